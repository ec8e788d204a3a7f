/**
 * A request whose body has been read: every layer can look at it as often as it likes.
 *
 * @module
 */

import { requestHeaders } from './headers.ts'

/** A request and its whole body. */
export interface Incoming {
  /** As it came; its body is used up. */
  readonly request: Request
  readonly method: string
  readonly url: URL
  readonly headers: Headers
  readonly body: Uint8Array<ArrayBuffer>
  /** The body as UTF-8; bytes that are none become U+FFFD. */
  text(): string
  /**
   * The body as JSON.
   *
   * @throws {@link NotJsonError} if it is none; answered with 400 where `validate` or `subject` lets it pass
   */
  json(): unknown
}

/** A request with its body. */
export function incomingOf(request: Request, body: Uint8Array<ArrayBuffer>): Incoming {
  const text = () => new TextDecoder().decode(body)
  return {
    request,
    method: request.method,
    url: new URL(request.url),
    headers: request.headers,
    body,
    text,
    json() {
      try {
        return JSON.parse(text()) as unknown
      } catch {
        throw new NotJsonError()
      }
    },
  }
}

/** A body is not JSON. */
export class NotJsonError extends SyntaxError {
  constructor() {
    super('the body is not JSON')
    this.name = 'NotJsonError'
  }
}

/** The same request anew, with its body and another signal. */
export function renewed(incoming: Pick<Incoming, 'method' | 'url' | 'headers' | 'body'>, signal: AbortSignal): Request {
  const { method, url, headers, body } = incoming
  return new Request(url, {
    method,
    headers: requestHeaders(headers),
    signal,
    ...(body.byteLength > 0 && { body }),
  })
}
