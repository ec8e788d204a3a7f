/**
 * Time and the network's state, as the client waits for them. Tests bring their own.
 *
 * @module
 */

/** Resolves after `ms`; rejects with the signal's reason as soon as that aborts. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>

/** Whether this device is on line. */
export interface Connectivity {
  /** False only if the device knows that it is off line. */
  isOnline(): boolean
  /** Resolves when it is on line again, or when the signal aborts; never rejects. */
  online(signal: AbortSignal): Promise<void>
}

/** By the machine's timers. */
export const sleep: Sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })

/** What the browser says; where there is none, always on line. */
export const browserConnectivity: Connectivity = {
  isOnline: () => (globalThis as { navigator?: { onLine?: boolean } }).navigator?.onLine !== false,
  online: (signal) =>
    new Promise((resolve) => {
      const page = globalThis as unknown as EventTarget
      const done = () => {
        page.removeEventListener('online', done)
        signal.removeEventListener('abort', done)
        resolve()
      }
      page.addEventListener('online', done)
      signal.addEventListener('abort', done)
      if (signal.aborted) done()
    }),
}

/** A signal of its own that also aborts with another's. */
export interface Following {
  readonly signal: AbortSignal
  abort(reason?: unknown): void
  /** Lets go of the other, which may live longer. */
  release(): void
}

/** Makes one: `AbortSignal.any` is missing in browsers of 2023. */
export function following(other: AbortSignal): Following {
  const controller = new AbortController()
  const onAbort = () => controller.abort(other.reason)
  if (other.aborted) onAbort()
  else other.addEventListener('abort', onAbort)
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    release: () => other.removeEventListener('abort', onAbort),
  }
}
