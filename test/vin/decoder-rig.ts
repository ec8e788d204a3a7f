import {
  createVinDecoder,
  type VinDecoder,
  type VinDecoderOptions,
  type VinOutcome,
} from '../../src/presets/vin/index.ts'
import { VirtualClock } from '../../storages/conformance/virtual-clock.ts'
import { randomOf } from '../support/vpic/index.ts'
import { FakeClient, type FakeRule } from './fake-client.ts'

export async function all(outcomes: AsyncIterable<VinOutcome>): Promise<VinOutcome[]> {
  const list: VinOutcome[] = []
  for await (const outcome of outcomes) list.push(outcome)
  return list
}

/** A decoder whose time stands still until told to move. */
export function virtual(rule: FakeRule, options: VinDecoderOptions = {}) {
  const clock = new VirtualClock(Date.UTC(2025, 5, 1))
  const client = new FakeClient(rule)
  const random = randomOf(7)
  const decoder = createVinDecoder({ client, clock, random, minIntervalMs: 0, ...options })
  return { clock, client, decoder }
}

/** Lets the time run until the promise settles, at most `ms`. */
export async function within<T>(clock: VirtualClock, ms: number, promise: Promise<T>): Promise<T> {
  let settled = false
  const done = () => {
    settled = true
  }
  promise.then(done, done)
  for (let gone = 0; gone < ms && !settled; gone += 100) await clock.advance(100)
  if (!settled) throw new Error(`not settled within ${ms} ms of virtual time`)
  return promise
}

export async function keptFor(decoder: VinDecoder, id: string): Promise<number> {
  const status = await decoder.queue.getStatus(id)
  return (status?.expiresAt ?? 0) - (status?.settledAt ?? 0)
}
