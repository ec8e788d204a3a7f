/**
 * The counters as OpenTelemetry instruments. They are observed when the reader asks, so that counting costs nothing more.
 *
 * @module
 */

import type { Counters } from './counters.ts'

/** As much of OpenTelemetry's `Meter` as is used here: no dependency on its API package. */
export interface Meter {
  createObservableCounter(name: string, options?: { description?: string; unit?: string }): ObservableCounter
}

/** As much of OpenTelemetry's `ObservableCounter` as is used here. */
export interface ObservableCounter {
  addCallback(callback: ObservableCallback): void
  removeCallback(callback: ObservableCallback): void
}

/** Reports a value when asked. */
export type ObservableCallback = (result: {
  observe(value: number, attributes?: Record<string, string | number | boolean>): void
}) => void

const descriptions: { readonly [name in keyof Counters]: string } = {
  claimed: 'records created by enqueues and runs',
  deduped: 'enqueues and runs that met a living record',
  executed: 'handler calls',
  replayed: 'answers given from a stored outcome',
  mismatched: 'enqueues with another payload than the living record has',
  completed: 'jobs completed',
  retried: 'attempts that failed and will be repeated',
  failed: 'jobs failed for good',
  stale_ignored: 'answers refused since another lease was given',
  held: 'times the queue was held for a rate limit',
  delivered: 'outbox rows delivered',
  undelivered: 'deliveries of outbox rows that failed and will be repeated',
}

/**
 * Registers an instrument `askonce.jobs.<counter>` for each counter.
 *
 * @param queueName - the attribute `askonce.queue` of every value
 * @returns ends the registration
 */
export function observe(meter: Meter, counters: Readonly<Counters>, queueName: string): () => void {
  const attributes = { 'askonce.queue': queueName }
  const ends = Object.entries(descriptions).map(([name, description]) => {
    const instrument = meter.createObservableCounter(`askonce.jobs.${name}`, { description, unit: '{job}' })
    const callback: ObservableCallback = (result) => result.observe(counters[name as keyof Counters], attributes)
    instrument.addCallback(callback)
    return () => instrument.removeCallback(callback)
  })
  return () => {
    for (const end of ends) end()
  }
}
