/**
 * Which headers travel on, and which are kept for replays.
 *
 * @module
 */

/** Marks a replay. */
export const idempotentReplay = 'idempotent-replay'

/** What is of one connection only (RFC 9110, 7.6.1). */
const hopByHop = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/**
 * What is of one answer only: cookies would hand one session to whoever repeats the request; the others are made anew for each
 * answer.
 */
const ofOneAnswer = ['set-cookie', 'set-cookie2', 'date', 'age', 'content-length', idempotentReplay]

/** Headers as JSON keeps them: lower case, in their order. */
export type StoredHeaders = readonly (readonly [string, string])[]

/** Headers of a request that is sent on: none of its connection, and no length, which the new one has of its own. */
export function requestHeaders(headers: Headers): Headers {
  const kept = new Headers(headers)
  for (const name of [...hopByHop, ...nominated(headers), 'content-length', 'expect']) kept.delete(name)
  return kept
}

/** Headers of a response that a replay repeats. */
export function replayedHeaders(response: Response): StoredHeaders {
  const left = new Set([...hopByHop, ...ofOneAnswer, ...nominated(response.headers)])
  // `fetch` has decoded the body, yet left the header: what is passed on isn't encoded any more.
  if (wasFetched(response)) left.add('content-encoding')
  return [...response.headers].filter(([name]) => !left.has(name))
}

/** Headers of a response that the first caller gets: all but its connection's, and no mark of a replay further up. */
export function answeredHeaders(response: Response): Headers {
  const kept = new Headers(response.headers)
  for (const name of [...hopByHop, ...nominated(response.headers), 'content-length', idempotentReplay])
    kept.delete(name)
  if (wasFetched(response)) kept.delete('content-encoding')
  return kept
}

/** Headers that `Connection` names are of this connection, too. */
function nominated(headers: Headers): string[] {
  const names = (headers.get('connection') ?? '').split(',').map((name) => name.trim().toLowerCase())
  return names.filter((name) => /^[\w!#$%&'*+.^`|~-]+$/.test(name))
}

/**
 * Whether a response may be given to others than who asked for it: not if it is `private` or `no-store` (RFC 9111, 5.2.2), and
 * not with `Vary`, which makes it depend on headers that are no part of the question.
 */
export function isShareable(headers: Headers): boolean {
  if ((headers.get('vary') ?? '') !== '') return false
  const directives = (headers.get('cache-control') ?? '').toLowerCase().split(',')
  return !directives.some((directive) => /^\s*(private|no-store)\s*(=|$)/.test(directive))
}

function wasFetched(response: Response): boolean {
  return response.url !== ''
}
