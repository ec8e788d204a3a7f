/**
 * From an HTTP answer to rows, or to the class of what went wrong. The status alone is not believed: XML, HTML, broken JSON
 * and "Execution Error" all come with 200.
 *
 * @module
 */

import type { ServiceClass } from './classes.ts'
import { VinDecodeError } from './errors.ts'
import { type HttpAnswer, upstream } from './http.ts'
import type { VpicRow } from './row.ts'

/**
 * The rows of an answer; at least one. `Count` and `SearchCriteria` are not looked at: both were seen to be wrong.
 *
 * @throws {@link VinDecodeError} of class THROTTLED, UPSTREAM or REQUEST_BUG
 */
export function rowsOf(answer: HttpAnswer): readonly VpicRow[] {
  const { status } = answer
  if (status !== 200) throw failureOf(answer)
  const kind = otherKind(answer)
  if (kind !== null) throw upstream(`status 200 with ${kind} in place of JSON`, 'body', { status })
  const envelope = parsed(answer.body)
  if (!isObject(envelope)) throw upstream('status 200 with broken JSON', 'body', { status })
  const message = envelope['Message']
  if (typeof message === 'string' && /^\s*execution error/i.test(message)) {
    throw upstream('status 200 with the message "Execution Error"', 'execution', { status })
  }
  const results = envelope['Results']
  if (!Array.isArray(results)) throw upstream('status 200 with JSON that has no Results', 'body', { status })
  const rows = results.filter(isObject)
  if (rows.length === 0) throw upstream('status 200 with empty Results', 'empty', { status })
  return rows
}

/** What an answer of another status means. */
function failureOf(answer: HttpAnswer): VinDecodeError {
  const { status } = answer
  const name = classOfStatus(answer)
  const asked = answer.retryAfterMs === null ? {} : { retryAfterMs: answer.retryAfterMs }
  return new VinDecodeError(`vPIC answered status ${status}`, { class: name, reason: 'status', status, ...asked })
}

function classOfStatus(answer: HttpAnswer): Exclude<ServiceClass, 'BATCH_GAP'> | 'REQUEST_BUG' {
  const { status } = answer
  if (status === 429) return 'THROTTLED'
  // The gateway's ban: a short HTML page. A 403 of an API is JSON and about the request.
  if (status === 403) return isJson(answer) ? 'REQUEST_BUG' : 'THROTTLED'
  if (status === 408 || status === 425 || status < 400 || status >= 500) return 'UPSTREAM'
  return 'REQUEST_BUG'
}

function isJson(answer: HttpAnswer): boolean {
  return otherKind(answer) === null && isObject(parsed(answer.body))
}

/** The type that the body is of, if it is not JSON: by its header, and by its first character when that says nothing. */
function otherKind({ contentType, body }: HttpAnswer): string | null {
  if (/\bhtml\b/.test(contentType)) return 'HTML'
  if (/\bxml\b/.test(contentType)) return 'XML'
  const start = body.trimStart().slice(0, 15).toLowerCase()
  if (!start.startsWith('<')) return null
  return start.startsWith('<!doctype html') || start.startsWith('<html') ? 'HTML' : 'XML'
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    // The parser's message quotes the body.
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
