/**
 * A DynamoDB in this process: dynalite, on a free port, with tables made as they are asked for.
 *
 * @module
 */

import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import dynalite from 'dynalite'

/** How clients reach a server of the tests: with credentials that are no secret, so that no others are looked for. */
export function clientConfig(endpoint: string): DynamoDBClientConfig {
  return {
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  }
}

/** A server. */
export class LocalDynamoDB {
  readonly endpoint: string
  readonly #server: Server
  readonly #clients: DynamoDBClient[] = []

  private constructor(server: Server) {
    this.#server = server
    this.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  static async start(): Promise<LocalDynamoDB> {
    const server = dynalite({ createTableMs: 0, deleteTableMs: 0, updateTableMs: 0 })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
    return new LocalDynamoDB(server)
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
