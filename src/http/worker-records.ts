/**
 * The record layer where workers do the asking: requests are enqueued, and whoever waits gets the worker's answer.
 *
 * @module
 */

import { StateError, StorageFullError } from '../errors.ts'
import type { JobState } from '../record.ts'
import { GivenUp, Patience } from './patience.ts'
import {
  type Ask,
  type Asked,
  answered,
  busy,
  enqueueOptions,
  failed,
  type RecordLayer,
  type RecordParts,
  refreshing,
  waitOptions,
} from './record.ts'

/** Asks through workers; see `executeUpstream`. The work of an ask is theirs, not the caller's. */
export class WorkerRecords implements RecordLayer {
  readonly #parts: RecordParts

  constructor(parts: RecordParts) {
    this.#parts = parts
  }

  async ask(ask: Ask): Promise<Asked> {
    const send = (ask: Ask) => (ask.ownWaitMs === 0 ? this.#askAndGo(ask) : this.#askAndWait(ask))
    try {
      return await refreshing(ask, this.#parts.onError, send)
    } catch (error) {
      // Of every other error it is not known whether the request was stored before: then a worker has it.
      if (!(error instanceof StorageFullError)) ask.onBegun?.()
      throw error
    }
  }

  async #askAndWait(ask: Ask): Promise<Asked> {
    const { queue, clock, maxAttempts, problemBase } = this.#parts
    const patience = new Patience(clock, ask.signal)
    patience.wait(ask.ownWaitMs)
    let own = true
    const onDuplicate = (state: JobState) => {
      own = false
      ask.onBegun?.()
      patience.met(state, ask.waitMs)
    }
    const options = { ...enqueueOptions(ask, maxAttempts), ...waitOptions(patience, onDuplicate) }
    try {
      return ofOwn(answered(await queue.enqueueAndWait(ask.id, ask.payload, options)), own)
    } catch (error) {
      return error instanceof GivenUp ? busy : ofOwn(failed(error, problemBase), own)
    } finally {
      patience.end()
    }
  }

  /** Who won't wait has it stored at least. */
  async #askAndGo(ask: Ask): Promise<Asked> {
    const { queue, maxAttempts } = this.#parts
    const answer = await queue.enqueue(ask.id, ask.payload, enqueueOptions(ask, maxAttempts))
    if (answer.status === 'completed') return answered(answer.result)
    if (answer.status !== 'duplicate') return busy
    if (answer.existingState === 'completed') throw new StateError('rows of its outbox are still to be delivered')
    const isOver = answer.existingState === 'failed'
    return isOver ? this.#askAndWait({ ...ask, refresh: false, ownWaitMs: Number.POSITIVE_INFINITY }) : busy
  }
}

function ofOwn(asked: Asked, own: boolean): Asked {
  return asked.kind === 'busy' ? busy : { ...asked, own }
}
