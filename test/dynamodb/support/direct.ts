/**
 * Ways to dynalite without sockets, for suites of many thousand requests: what HTTP, and the SDK, add is met in the other files, and
 * in these with ASKONCE_LONG=1.
 *
 * @module
 */

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb'
import type { DynamoDBClientLike } from '../../../storages/dynamodb/calls.ts'

interface Request {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

interface Response {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** What dynalite wants to see, though it does not check it. */
const signed = {
  authorization: 'AWS4-HMAC-SHA256 Credential=test, SignedHeaders=host, Signature=test',
  'x-amz-date': '20260101T000000Z',
}

/** Configuration of an SDK's client that hands its requests straight to a listener, unsigned. */
export function directConfig(listener: RequestListener): DynamoDBClientConfig {
  return {
    signer: { sign: async (request: unknown) => request },
    requestHandler: {
      metadata: { handlerProtocol: 'http/1.1' },
      handle: async (request: Request) => ({ response: await handle(listener, request) }),
      destroy: () => {},
      updateHttpClientConfig: () => {},
      httpHandlerConfigs: () => ({}),
    },
  } as unknown as DynamoDBClientConfig
}

/** A client without the SDK: sends a command's input as JSON, and answers or throws what comes back. It repeats nothing. */
export function directClient(listener: RequestListener): DynamoDBClientLike {
  return {
    config: {},
    async send(command: { readonly input: object; readonly constructor: { readonly name: string } }) {
      const operation = command.constructor.name.replace(/Command$/, '')
      const { statusCode, body } = await handle(listener, {
        method: 'POST',
        headers: {
          'content-type': 'application/x-amz-json-1.0',
          'x-amz-target': `DynamoDB_20120810.${operation}`,
        },
        body: JSON.stringify(command.input, toBase64),
      })
      const output = JSON.parse(Buffer.from(body).toString(), fromBase64)
      const $metadata = { httpStatusCode: statusCode, attempts: 1 }
      if (statusCode === 200) return { ...output, $metadata }
      const {
        __type: type,
        message,
        Message,
        ...rest
      } = output as { __type: string; message?: string; Message?: string }
      const error = new Error(message ?? Message ?? '')
      throw Object.assign(error, rest, { name: type.slice(type.indexOf('#') + 1), $metadata, $fault: 'client' })
    },
  }
}

/** Bytes as JSON has them. (A Buffer would have become an object before this could see it: so its holder is looked into.) */
function toBase64(this: Record<string, unknown>, key: string, value: unknown): unknown {
  const held = this[key]
  return held instanceof Uint8Array ? Buffer.from(held).toString('base64') : value
}

function fromBase64(key: string, value: unknown): unknown {
  return key === 'B' && typeof value === 'string' ? new Uint8Array(Buffer.from(value, 'base64')) : value
}

function handle(listener: RequestListener, { method, headers, body = '' }: Request): Promise<Response> {
  return new Promise((resolve, reject) => {
    const lost = () => reject(Object.assign(new Error('the answer was lost'), { code: 'ECONNRESET' }))
    const request = {
      method,
      url: '/',
      headers: { ...headers, ...signed },
      socket: { destroy: () => setImmediate(lost) },
      on(event: string, listener: (chunk?: Buffer) => void) {
        // A turn of the event loop each way, as with a socket: what waits for one another must not run in one go.
        if (event === 'data') setImmediate(listener, Buffer.from(body))
        else if (event === 'end') setImmediate(listener)
        return this
      },
      removeAllListeners() {
        return this
      },
    }
    const answer: Record<string, string> = {}
    const response = {
      statusCode: 200,
      setHeader(name: string, value: unknown) {
        answer[name.toLowerCase()] = String(value)
      },
      end(content: string) {
        const { statusCode } = this
        setImmediate(resolve, { statusCode, headers: answer, body: Buffer.from(content) })
        return this
      },
    }
    listener(request as unknown as IncomingMessage, response as unknown as ServerResponse)
  })
}
