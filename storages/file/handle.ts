/**
 * The storage contract's operations, as plans that a {@link Space} runs.
 *
 * @module
 */

import { StorageClosedError } from '../../src/errors.ts'
import type {
  CancelOutcome,
  DeliverOutcome,
  EnqueueCommand,
  EnqueueOutcome,
  ExtendOutcome,
  MarkOutcome,
  SettleOutcome,
  TouchOutcome,
} from '../../src/machine.ts'
import { living } from '../../src/machine.ts'
import type { JobRecord } from '../../src/record.ts'
import type {
  ClaimAnswer,
  ClaimRequest,
  CollectRequest,
  DeliverAnswers,
  Delivery,
  EnqueueAnswers,
  EnqueueItem,
  GetAnswers,
  HintListener,
  LeaseTerms,
  Mark,
  SettleAnswers,
  Settlement,
  StorageHandle,
  StorageStats,
} from '../../src/storage.ts'
import type { Call, Plan, PlannedCommand } from './call.ts'
import type { Outcome, Replica } from './replica.ts'
import type { Space } from './space.ts'

/** One handle on a {@link Space}. */
export class FileHandle implements StorageHandle {
  readonly #space: Space
  readonly #release: () => Promise<void>
  readonly #unwatch = new Set<() => void>()
  #running = 0
  #onIdle: (() => void) | null = null
  #closed: Promise<void> | null = null

  /** @param release - called once, when the handle is closed */
  constructor(space: Space, release: () => Promise<void>) {
    this.#space = space
    this.#release = release
  }

  enqueue(items: readonly EnqueueItem[]): Promise<EnqueueAnswers> {
    return this.#run({ commands: items.map(enqueueCommand) }, (call) => ({
      now: call.now,
      answers: call.outcomes.map((outcome) => {
        const { record, answer } = known(outcome)
        const { outcome: how, leased, mismatch } = answer as EnqueueOutcome
        return { outcome: how, leased, mismatch, record: record as JobRecord }
      }),
    }))
  }

  claim(request: ClaimRequest): Promise<ClaimAnswer> {
    return this.#run({ claim: request }, claimAnswer)
  }

  extend(items: readonly ({ readonly id: string } & LeaseTerms)[]): Promise<readonly ExtendOutcome[]> {
    const commands = items.map(({ id, generation, leaseMs }): PlannedCommand => {
      return { id, command: { type: 'extend', generation, leaseMs } }
    })
    return this.#run({ commands }, (call) => answersOf<ExtendOutcome>(call))
  }

  settle(items: readonly Settlement[], claim: ClaimRequest | null): Promise<SettleAnswers> {
    const commands = items.map(({ id, generation, verdict }): PlannedCommand => {
      return { id, command: { type: 'settle', generation, verdict } }
    })
    return this.#run({ commands, claim }, (call, replica) => ({
      answers: answersOf<SettleOutcome>(call),
      claim: claim === null ? null : claimAnswer(call, replica),
    }))
  }

  cancel(ids: readonly string[]): Promise<readonly CancelOutcome[]> {
    const commands = ids.map((id): PlannedCommand => ({ id, command: { type: 'cancel' } }))
    return this.#run({ commands }, (call) => answersOf<CancelOutcome>(call))
  }

  touch(items: readonly { readonly id: string; readonly ttlMs: number }[]): Promise<readonly TouchOutcome[]> {
    const commands = items.map(({ id, ttlMs }): PlannedCommand => ({ id, command: { type: 'touch', ttlMs } }))
    return this.#run({ commands }, (call) => answersOf<TouchOutcome>(call))
  }

  mark(items: readonly Mark[]): Promise<readonly MarkOutcome[]> {
    const commands = items.map(
      ({ id, name, token }): PlannedCommand => ({ id, command: { type: 'mark', name, token } }),
    )
    return this.#run({ commands }, (call) => answersOf<MarkOutcome>(call))
  }

  deliver(items: readonly Delivery[], request: CollectRequest | null): Promise<DeliverAnswers> {
    const commands = items.map(({ id, generation, rows, delayMs }): PlannedCommand => {
      return { id, command: { type: 'deliver', generation, rows, delayMs } }
    })
    return this.#run({ commands, collect: request }, (call, { table }) => {
      const { now, collected: records } = call
      const collected = request === null ? null : { now, records, nextInMs: table.nextOutboxInMs(now) }
      return { answers: answersOf<DeliverOutcome>(call), collected }
    })
  }

  get(ids: readonly string[]): Promise<GetAnswers> {
    return this.#run({}, ({ now }, { table }) => ({ now, records: ids.map((id) => living(table.get(id), now)) }))
  }

  watch(listener: HintListener): () => void {
    if (this.#closed !== null) throw new StorageClosedError()
    const end = this.#space.watch(listener)
    const unwatch = () => {
      end()
      this.#unwatch.delete(unwatch)
    }
    this.#unwatch.add(unwatch)
    return unwatch
  }

  sweep(limit: number): Promise<number> {
    return this.#run({ sweepLimit: limit }, (call) => call.swept)
  }

  hold(ms: number): Promise<void> {
    return this.#run({ holdMs: ms }, () => undefined)
  }

  stats(): Promise<StorageStats> {
    return this.#run({}, ({ now }, { table }) => ({ ...table.counts, heldForMs: Math.max(0, table.holdUntil - now) }))
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    for (const unwatch of this.#unwatch) unwatch()
    if (this.#running > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve))
    await this.#release()
  }

  #run<Answer>(plan: Plan, prepare: (call: Call, replica: Replica) => Answer): Promise<Answer> {
    if (this.#closed !== null) return Promise.reject(new StorageClosedError())
    this.#running++
    return this.#space.run(plan, prepare, this.#ended)
  }

  readonly #ended = (): void => {
    if (--this.#running === 0) this.#onIdle?.()
  }
}

function enqueueCommand(item: EnqueueItem): PlannedCommand {
  const { spec, payload, rejectMismatch, refresh } = item
  const inline = item.lease !== null
  const delayMs = inline ? 0 : item.delayMs
  const lease = item.lease === null ? null : { ...item.lease, graceMs: 0 }
  const command: EnqueueCommand = { type: 'enqueue', spec, payload, delayMs, rejectMismatch, lease, inline }
  return { id: spec.id, command: refresh === true ? { ...command, refresh } : command }
}

function claimAnswer({ now, jobs, exhausted }: Call, { table }: Replica): ClaimAnswer {
  const heldForMs = Math.max(0, table.holdUntil - now)
  return { now, jobs, exhausted, nextInMs: table.nextDueInMs(now, 0), heldForMs }
}

function known(outcome: Outcome | undefined): NonNullable<Outcome> {
  // A call is answered when each of its commands has its outcome; null is for what is no command.
  return outcome as NonNullable<Outcome>
}

function answersOf<Answer>(call: Call): Answer[] {
  return call.outcomes.map((outcome) => known(outcome).answer as Answer)
}
