/**
 * A call that must end in time.
 *
 * @module
 */

import type { Clock, Timer } from '../clock.ts'

/** A call took too long. */
export class DeadlineError extends Error {
  constructor(field: string, ms: number) {
    super(`no answer within ${field} = ${ms}`)
    this.name = 'DeadlineError'
  }
}

/**
 * Calls with a signal that aborts with the outer one, or when the time is up. The call may ignore it: then its end is unheard.
 *
 * @param ms - may be Infinity
 * @throws {@link DeadlineError} when the time is up; what the call throws
 */
export async function within<T>(
  { clock, field, ms }: { readonly clock: Clock; readonly field: string; readonly ms: number },
  outer: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (ms === Number.POSITIVE_INFINITY) return call(outer)
  const controller = new AbortController()
  const onAbort = () => controller.abort(outer.reason)
  if (outer.aborted) onAbort()
  else outer.addEventListener('abort', onAbort, { once: true })
  let timer: Timer | undefined
  const late = new Promise<never>((_resolve, reject) => {
    const end = () => {
      const error = new DeadlineError(field, ms)
      reject(error)
      controller.abort(error)
    }
    timer = clock.timer(end, ms, true)
  })
  const answer = call(controller.signal)
  answer.catch(() => {})
  try {
    return await Promise.race([late, answer])
  } finally {
    timer?.clear()
    outer.removeEventListener('abort', onAbort)
  }
}
