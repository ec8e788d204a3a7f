/**
 * Everything that is answered without an outcome, each in one place: what the client sees, and whether it may come again.
 *
 * @module
 */

import { type ProblemCode, problem, retryAfter } from './problem.ts'

/** Makes the answers. */
export class Refusals {
  readonly #base: string
  readonly #retryAfterMs: number
  readonly #link: Readonly<Record<string, string>>

  /** @param documentation - a page about keys, linked from what is wrong with one; null for none */
  constructor(base: string, retryAfterMs: number, documentation: string | null = null) {
    this.#base = base
    this.#retryAfterMs = retryAfterMs
    this.#link = documentation === null ? {} : { link: `<${documentation}>; rel="describedby"; type="text/html"` }
  }

  keyMissing(): Response {
    const detail = 'This operation requires an Idempotency-Key: a new one for each request, the same for its retries.'
    return this.#make(400, 'key-missing', 'Idempotency-Key is missing', detail, this.#link)
  }

  keyMalformed(fault: string): Response {
    const detail = `The header can not be read: ${fault}.`
    return this.#make(400, 'key-malformed', 'Idempotency-Key is malformed', detail, this.#link)
  }

  actorMissing(status: number): Response {
    const detail = 'A key counts for one actor only, and the request has none.'
    return this.#make(status, 'actor-missing', 'It is not known who asks', detail)
  }

  tooLarge(bytesMax: number): Response {
    return this.#make(413, 'body-too-large', 'The body is too large', `At most ${bytesMax} bytes are taken.`)
  }

  unreadable(): Response {
    return this.#make(400, 'body-unreadable', 'The body could not be read', 'It broke off, or had been read before.')
  }

  notJson(): Response {
    return this.#make(400, 'invalid-input', 'The input is invalid', 'The body is not JSON.')
  }

  mismatch(): Response {
    const detail = 'The key was sent before with another method, path or body. A new request needs a new key.'
    return this.#make(422, 'payload-mismatch', 'Idempotency-Key is already used', detail, this.#link)
  }

  inProgress(): Response {
    const title = 'A request is outstanding for this Idempotency-Key'
    const detail = 'The first request of this key is not done yet. Repeat it later with the same key.'
    return this.#make(409, 'in-progress', title, detail, { ...this.#link, ...this.#later() })
  }

  /** @param location - where to ask for the outcome; null if that is where this was asked */
  accepted(location: string | null): Response {
    const headers = { 'cache-control': 'no-store', 'content-type': 'application/json', ...this.#later() }
    return new Response(JSON.stringify({ state: 'processing', ...(location !== null && { location }) }), {
      status: 202,
      headers: { ...headers, ...(location !== null && { location }) },
    })
  }

  unavailable(detail: string): Response {
    return this.#make(503, 'unavailable', 'Temporarily unavailable', detail, this.#later())
  }

  /** The work may have begun, and nobody here will hear of its end. */
  outcomeUnknown(): Response {
    const title = 'The outcome is not known yet'
    const detail =
      'The server lost sight of the request: it may have been carried out, or be under way. Repeat it with the same key.'
    return this.#make(503, 'outcome-unknown', title, detail, { ...this.#link, ...this.#later() })
  }

  notFound(): Response {
    return this.#make(404, 'not-found', 'There is no such request', 'It is not known, or not kept any more.')
  }

  notAllowed(methods: readonly string[]): Response {
    const headers = { allow: methods.join(', ') }
    return this.#make(405, 'method-not-allowed', 'The method is not allowed', undefined, headers)
  }

  internal(): Response {
    return this.#make(500, 'internal', 'The server failed')
  }

  #later(): Readonly<Record<string, string>> {
    return retryAfter(this.#retryAfterMs)
  }

  #make(
    status: number,
    code: ProblemCode,
    title: string,
    detail?: string,
    headers: Readonly<Record<string, string>> = {},
  ): Response {
    return problem(status, code, title, detail, { headers, base: this.#base })
  }
}
