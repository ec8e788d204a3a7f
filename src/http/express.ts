/**
 * Fetch handlers as Express routes, 4 and 5. Express itself is not imported.
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { type FetchHandler, type ReadAlready, serve } from './node.ts'

/** An Express request, as far as it is used. */
export type ExpressRequest = IncomingMessage & { readonly originalUrl?: string; readonly body?: unknown }

/**
 * Makes a route: `app.post('/decode', toExpressHandler(handler))`. Best put before any body parser: then the body's bytes are the
 * client's own. After `express.raw()` they are, too; what `express.json()` has read is written as JSON again.
 */
export function toExpressHandler(handler: FetchHandler): (request: ExpressRequest, response: ServerResponse) => void {
  return (request, response) => {
    const { originalUrl } = request
    const body = request.readableEnded ? bytesOf(request.body) : undefined
    const already: ReadAlready = {
      ...(originalUrl !== undefined && { url: originalUrl }),
      ...(body !== undefined && { body }),
    }
    void serve(handler, request, response, already)
  }
}

/** What a body parser left. */
function bytesOf(body: unknown): Uint8Array<ArrayBuffer> | undefined {
  if (body === undefined) return undefined
  if (body instanceof Uint8Array) return new Uint8Array(body)
  return new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body))
}
