/**
 * A network and a time that do what a test's script says.
 *
 * @module
 */

import type { Attempt, AttemptHeaders, AttemptWait, Send, SendAttemptOptions, Sleep } from '../../src/client/index.ts'
import { mintAttempt } from '../../src/client/index.ts'

/** What one request gets: an answer, an error to throw, or what a function does. */
export type Step = Response | Error | ((signal: AbortSignal) => Response | Promise<Response>)

/** What was sent. */
export interface Sent {
  readonly headers: AttemptHeaders
  readonly attempt: Attempt
  readonly signal: AbortSignal
  readonly at: number
}

/** No test's wait is as long, so that a sleep of this length is a request's own time-out. */
const timeoutMs = 77_777

export class ClientRig {
  now = 1_700_000_000_000
  random = 0.5
  online = true
  readonly sent: Sent[] = []
  /** The waits between requests, ms. */
  readonly waits: number[] = []
  readonly told: AttemptWait[] = []
  /** Called in each wait, before it is over. */
  onSleep: (ms: number) => void = () => {}
  #silence: (() => void) | null = null
  #onOnline: (() => void)[] = []
  readonly #steps: Step[]

  constructor(...steps: Step[]) {
    this.#steps = steps
  }

  /** Ends the request under way by its time-out. */
  beSilent(): void {
    this.#silence?.()
  }

  comeOnline(): void {
    this.online = true
    for (const resolve of this.#onOnline.splice(0)) resolve()
  }

  mint(subject = 'vin:1', ttlMs = 60_000): Attempt {
    return mintAttempt(subject, { ttlMs, now: () => this.now })
  }

  readonly send: Send = async (headers, attempt, signal) => {
    this.sent.push({ headers, attempt, signal, at: this.now })
    const step = this.#steps.shift()
    if (step === undefined) throw new Error('the script is over')
    if (step instanceof Error) throw step
    return typeof step === 'function' ? step(signal) : step
  }

  readonly sleep: Sleep = async (ms, signal) => {
    if (ms === timeoutMs) return this.#untilSilence(signal)
    this.waits.push(ms)
    this.onSleep(ms)
    signal.throwIfAborted()
    this.now += ms
  }

  #untilSilence(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#silence = resolve
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  }

  options(more: SendAttemptOptions = {}): SendAttemptOptions {
    return {
      timeoutMs,
      now: () => this.now,
      random: () => this.random,
      sleep: this.sleep,
      connectivity: {
        isOnline: () => this.online,
        online: () => new Promise((resolve) => this.#onOnline.push(resolve)),
      },
      onWait: (wait) => this.told.push(wait),
      ...more,
    }
  }

  /** The keys that were sent, each once. */
  get keys(): string[] {
    return [...new Set(this.sent.map(({ headers }) => headers['Idempotency-Key']))]
  }
}

/** An answer with a status. */
export function answer(status: number, headers: Record<string, string> = {}, body: string | null = null): Response {
  return new Response(body, { status, headers })
}
