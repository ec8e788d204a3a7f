/**
 * A request as a record keeps it: the fingerprint alone for an inline run, which has the request itself; all of it for a worker.
 *
 * @module
 */

import { restored, type StoredBytes, stored } from './bytes.ts'
import { requestHeaders, type StoredHeaders } from './headers.ts'
import type { Incoming } from './incoming.ts'

/** The payload of a record: plain JSON, so that any queue can keep it. */
export interface StoredRequest {
  /** Tells a retry from another request under the same key. */
  readonly fingerprint: string
  /** What a worker needs; absent where the request itself is at hand. */
  readonly sent?: SentRequest
}

/** A request for a worker. */
export interface SentRequest {
  readonly method: string
  readonly url: string
  readonly headers: StoredHeaders
  readonly body: StoredBytes
  /** The id of the cached result that may answer it; the record's own id if it is that result; null for none. */
  readonly cacheId: string | null
  /** If that is shared: the id of the actor's own, for an answer that must not be; else null. */
  readonly ownId: string | null
  /** Whether no cached result will do. */
  readonly refresh: boolean
}

/** What a worker will see of a request: the headers named, no others. */
export function sent(
  incoming: Incoming,
  names: readonly string[],
  { cacheId, ownId }: Pick<SentRequest, 'cacheId' | 'ownId'>,
  refresh: boolean,
): SentRequest {
  const headers = requestHeaders(incoming.headers)
  const kept = names.flatMap((name): [string, string][] => {
    const value = headers.get(name)
    return value === null ? [] : [[name.toLowerCase(), value]]
  })
  const { method, url, body } = incoming
  return { method, url: url.href, headers: kept, body: stored(body), cacheId, ownId, refresh }
}

/** The request again. */
export function received(request: SentRequest): Pick<Incoming, 'method' | 'url' | 'headers' | 'body'> {
  return {
    method: request.method,
    url: new URL(request.url),
    headers: new Headers(request.headers.map(([name, value]): [string, string] => [name, value])),
    body: restored(request.body),
  }
}

/** The question once more, as a request about one actor's own answer. */
export function askingFor(payload: StoredRequest, ownId: string): StoredRequest {
  const { sent } = payload
  return sent === undefined
    ? { fingerprint: ownId }
    : { fingerprint: ownId, sent: { ...sent, cacheId: ownId, ownId: null } }
}
