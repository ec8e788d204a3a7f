/**
 * The fault injector for record stores: what lies between `fromRecordStore` and a store.
 *
 * @module
 */

import { StorageError } from '../../../src/errors.ts'
import type { Change, DueAnswer, DueKind, JobRow, RecordStore, SwapAnswer } from '../../../src/record-store.ts'
import type { NetworkOptions } from './faults.ts'
import { Network } from './faults.ts'

/** A store behind a network with faults, and with hints that can't be trusted. */
export function faultyRecordStore(inner: RecordStore, options: NetworkOptions): RecordStore {
  const network = new Network(options)
  const before = new Map<DueKind, DueAnswer>()

  function answerOf(change: Change, answer: SwapAnswer): SwapAnswer {
    if (!answer.ok) return answer
    if (network.roll('changeDoubt'))
      return { ok: false, error: new StorageError('made or not, says the fault injector') }
    // A removal that was sent twice can't be told from one that came too late: the contract wants an error there.
    if (!network.roll('changeEcho')) return answer
    if (change.to === null) return { ok: false, error: new StorageError('removed or not, says the fault injector') }
    return { ok: false, row: change.to }
  }

  function distort(kind: DueKind, answer: DueAnswer): DueAnswer {
    const last = before.get(kind)
    before.set(kind, answer)
    if (last !== undefined && network.roll('dueStale')) return last
    if (network.roll('dueLost')) {
      return { items: answer.items.filter(() => network.random() < 0.5), nextAt: null }
    }
    if (network.roll('dueWrong')) {
      const old = (last?.items ?? []).map((item) => (typeof item === 'string' ? item : item.key))
      return { items: ['no such id', ...old, ...answer.items], nextAt: answer.nextAt }
    }
    return answer
  }

  const store: RecordStore = {
    load: (keys) => network.call(() => inner.load(keys)),
    swap: (changes) =>
      network.call(async () => {
        const answers = await inner.swap(changes)
        return answers.map((answer, index) => answerOf(changes[index] as Change, answer))
      }),
    async due(limit, now, kind) {
      const answer = distort(kind, await network.call(() => inner.due(limit, now, kind)))
      return answer.items.length <= limit ? answer : { items: answer.items.slice(0, limit), nextAt: now }
    },
    watch(listener) {
      let watching = true
      const unwatch = inner.watch((hint) => network.hint(() => void (watching && listener(hint))))
      return () => {
        watching = false
        unwatch()
      }
    },
    close: () => inner.close(),
  }
  if (inner.fill !== undefined) {
    const fill = inner.fill.bind(inner)
    store.fill = (rows: readonly JobRow[]) => network.call(() => fill(rows))
  }
  if (inner.stats !== undefined) {
    const stats = inner.stats.bind(inner)
    store.stats = () => network.call(() => stats())
  }
  return store
}
