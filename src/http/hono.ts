/**
 * Fetch handlers as Hono routes. Hono itself is not imported.
 *
 * @module
 */

import type { FetchHandler } from './node.ts'

/** A Hono context, as far as it is used. */
export interface HonoContext {
  readonly req: { readonly raw: Request; arrayBuffer(): Promise<ArrayBuffer> }
}

/** Makes a route: `app.post('/decode', toHonoHandler(handler))`. A body that middleware has read is taken from Hono's cache. */
export function toHonoHandler(handler: FetchHandler): (context: HonoContext) => Promise<Response> {
  return async ({ req }) => {
    const { raw } = req
    if (!raw.bodyUsed) return handler(raw)
    const { method, headers, signal } = raw
    const body = await req.arrayBuffer().catch(() => null)
    // Read past Hono, it is in no cache: the handler will say so.
    return handler(body === null ? raw : new Request(raw.url, { method, headers, signal, body }))
  }
}
