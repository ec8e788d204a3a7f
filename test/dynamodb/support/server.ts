/// <reference path="./dynalite.d.ts" />
/**
 * A DynamoDB in this process: dynalite, on a free port, with tables made as they are asked for.
 *
 * @module
 */

import type { RequestListener, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import dynalite from 'dynalite'
import type { DynamoDBClientLike } from '../../../storages/dynamodb/calls.ts'
import { directClient, directConfig } from './direct.ts'
import type { Wire } from './wire.ts'
import { wired } from './wire.ts'

/** How clients reach a server of the tests: with credentials that are no secret, so that no others are looked for. */
export function clientConfig(endpoint: string): DynamoDBClientConfig {
  return {
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  }
}

/** The SDK's repetitions without its waits. */
export function atOnce(attemptsMax: number): NonNullable<DynamoDBClientConfig['retryStrategy']> {
  const token = (count: number) => ({ getRetryCount: () => count, getRetryDelay: () => 0, getRetryCost: () => 0 })
  return {
    acquireInitialRetryToken: async () => token(0),
    refreshRetryTokenForRetry: async (last: { getRetryCount(): number }, { errorType }: { errorType: string }) => {
      const count = last.getRetryCount() + 1
      if (count >= attemptsMax || errorType === 'CLIENT_ERROR') throw new Error('no more repetitions')
      return token(count)
    },
    recordSuccess: () => {},
  } as unknown as NonNullable<DynamoDBClientConfig['retryStrategy']>
}

/** A server. */
export class LocalDynamoDB {
  readonly endpoint: string
  /** What is done to requests and answers on their way. */
  readonly wire: Wire
  /** For the SDK's clients of this process that need no sockets; see {@link directConfig}. */
  readonly directConfig: DynamoDBClientConfig
  /** A client without sockets and SDK; see {@link directClient}. */
  readonly directClient: DynamoDBClientLike
  readonly #server: Server
  readonly #clients: DynamoDBClient[] = []

  private constructor(server: Server, wire: Wire, listener: RequestListener) {
    this.#server = server
    this.wire = wire
    this.directConfig = directConfig(listener)
    this.directClient = directClient(listener)
    this.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  static async start(): Promise<LocalDynamoDB> {
    const server = dynalite({ createTableMs: 0, deleteTableMs: 0, updateTableMs: 0 })
    const [listener] = server.listeners('request') as RequestListener[]
    const between = wired(listener!)
    server.removeAllListeners('request')
    server.on('request', between.listener)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
    return new LocalDynamoDB(server, between.wire, between.listener)
  }

  /** How clients reach it. */
  get config(): DynamoDBClientConfig {
    return clientConfig(this.endpoint)
  }

  /** A client; ended with the server. */
  client(config: DynamoDBClientConfig = {}): DynamoDBClient {
    const client = new DynamoDBClient({ ...clientConfig(this.endpoint), ...config })
    this.#clients.push(client)
    return client
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.destroy()
    this.#server.closeAllConnections()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }
}
