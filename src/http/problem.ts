/**
 * Problem details (RFC 9457): what every refusal of askonce looks like.
 *
 * @module
 */

/** What went wrong, in a word; stable, and made for `switch`. Also the end of the problem's `type`. */
export type ProblemCode =
  | 'key-missing'
  | 'key-malformed'
  | 'actor-missing'
  | 'in-progress'
  | 'payload-mismatch'
  | 'invalid-input'
  | 'body-too-large'
  | 'body-unreadable'
  | 'unavailable'
  | 'upstream-failed'
  | 'upstream-timeout'
  | 'outcome-unknown'
  | 'response-too-large'
  | 'not-found'
  | 'method-not-allowed'
  | 'internal'

/** What can be added to a problem. */
export interface ProblemExtras {
  readonly headers?: Readonly<Record<string, string>>
  /** Further members of the body; `type`, `title`, `status`, `detail` and `code` are not overwritten. */
  readonly members?: Readonly<Record<string, unknown>>
  /** Put before the code to make `type`: a page of yours per problem. Default: {@link problemBase}. */
  readonly base?: string
}

/** The default beginning of every `type`. */
export const problemBase = 'urn:askonce:problem:'

/** The media type. */
export const problemType = 'application/problem+json'

/**
 * Makes a response of `application/problem+json`, never cached.
 *
 * @param code - one of {@link ProblemCode}, or a word of your own
 * @param title - the same for every problem of this code
 * @param detail - about this one; must hold no secrets
 */
export function problem(
  status: number,
  code: ProblemCode | (string & {}),
  title: string,
  detail?: string,
  extras: ProblemExtras = {},
): Response {
  return new Response(problemBody(status, code, title, detail, extras), {
    status,
    headers: { 'cache-control': 'no-store', ...extras.headers, ...problemHeaders },
  })
}

/** Headers of every problem. */
export const problemHeaders = Object.freeze({ 'content-type': problemType, 'content-language': 'en' })

/** The body of a problem. */
export function problemBody(
  status: number,
  code: string,
  title: string,
  detail?: string,
  extras: ProblemExtras = {},
): string {
  const { members, base = problemBase } = extras
  return JSON.stringify({
    ...members,
    type: base + code,
    title,
    status,
    ...(detail !== undefined && { detail }),
    code,
  })
}

/** A request that will never do as it is: for `validate`. */
export function invalidInput(detail: string, members: Readonly<Record<string, unknown>> = {}): Response {
  return problem(422, 'invalid-input', 'The input is invalid', detail, { members })
}

/** `Retry-After` in whole seconds, at least one (RFC 9110, 10.2.3). */
export function retryAfter(ms: number): Readonly<Record<string, string>> {
  return { 'retry-after': String(Math.max(1, Math.ceil(ms / 1_000))) }
}
