/**
 * The oracles: what the notes of a fleet's processes, and the records that are left, must not say. Each names the promise that it is
 * there for. None of them knows how a storage works.
 *
 * @module
 */

import { quoteId } from '../../../src/errors.ts'
import type { JobRecord } from '../../../src/record.ts'
import { familyOf } from './families.ts'
import type { Belief, Diary, Made, Note, Operation, Result } from './notes.ts'

/** A promise that can be broken. */
export type Oracle =
  /** What was acknowledged is there, and has ended as it should. */
  | 'conservation'
  /** No second record while one lives. */
  | 'no replacement'
  /** One unexpired lease an id. */
  | 'one lease'
  /** A lease that was taken over settles nothing. */
  | 'fencing'
  /** One terminal verdict an incarnation. */
  | 'one verdict'
  /** No more attempts than allowed. */
  | 'attempts'
  /** What is cancelled does not run. */
  | 'cancel'
  /** Every call is answered, with a result that some run gave, or an error that fits. */
  | 'answers'
  /** After the faults everything ends and goes on. */
  | 'liveness'
  /** Nothing stays: no record past its end, no process. */
  | 'leftovers'

/** A broken promise. */
export interface Violation {
  readonly oracle: Oracle
  readonly message: string
}

/** What the judges are given. */
export interface Evidence {
  readonly diaries: readonly Diary[]
  /** The records of all ids that stay, when everything has ended. */
  readonly finals: ReadonlyMap<string, JobRecord | null>
  /** By how much two leases may seem to overlap, ms: the clocks that end them are so far apart. */
  readonly toleranceMs: number
}

/** What they found. */
export interface Judgement {
  readonly violations: readonly Violation[]
  /** Ids whose enqueue was acknowledged. */
  readonly acknowledged: number
  /** Calls by operation. */
  readonly calls: Readonly<Record<Operation, number>>
  /** Answers that were errors, by code. */
  readonly errors: Readonly<Record<string, number>>
  readonly runs: number
  /** Jobs that ran more than once though none of their attempts had to fail. */
  readonly ranMoreThanOnce: number
}

/** The clocks' resolution: a millisecond cut off at each end of a lease. */
const clockMs = 2

interface Lease {
  readonly generation: string
  readonly since: number
  readonly asked: number
  until: number
  /** Whether its owner has asked to settle it: no renewal that was under way brings it back. */
  givenUp: boolean
}

/** Judges. */
export function judge(evidence: Evidence): Judgement {
  return new Judge(evidence).judgement()
}

class Judge {
  readonly #evidence: Evidence
  readonly #violations: Violation[] = []
  readonly #acknowledged = new Set<string>()
  readonly #created = new Map<string, number>()
  /** Who made the records of ids that stay. */
  readonly #makers = new Map<string, Set<string>>()
  /** Runs that gave the stored result, by incarnation. */
  readonly #winners = new Map<string, Set<string>>()
  readonly #runs = new Map<string, Set<string>>()
  readonly #leases = new Map<string, Lease[]>()
  /** When leases were given up for the results that were stored, by id and generation. */
  readonly #givenUp = new Map<string, number>()
  readonly #settled = new Map<string, Set<string>>()
  /** When an enqueue was acknowledged as the one that made the record, by token. */
  readonly #madeAt = new Map<string, number>()
  readonly #cancels: { id: string; asked: number; answered: number }[] = []
  readonly #runsOf = new Map<string, { token: string; at: number }[]>()
  readonly #calls: Record<Operation, number> = { enqueue: 0, wait: 0, run: 0, cancel: 0, status: 0, touch: 0 }
  readonly #errors: Record<string, number> = {}
  #runCount = 0

  constructor(evidence: Evidence) {
    this.#evidence = evidence
  }

  judgement(): Judgement {
    const { diaries } = this.#evidence
    for (const { notes } of diaries) for (const note of notes) if (note.kind === 'ran') this.#ran(note)
    for (const diary of diaries) this.#read(diary)
    this.#finals()
    this.#onceEach()
    this.#overlaps()
    this.#fenced()
    this.#cancelled()
    let ranMoreThanOnce = 0
    for (const [id, runs] of this.#runs) {
      const { stays, fails } = familyOf(id)
      if (runs.size > 1 && stays && !fails(1)) ranMoreThanOnce++
    }
    return {
      violations: this.#violations,
      acknowledged: this.#acknowledged.size,
      calls: this.#calls,
      errors: this.#errors,
      runs: this.#runCount,
      ranMoreThanOnce,
    }
  }

  #fail(oracle: Oracle, id: string, message: string): void {
    this.#violations.push({ oracle, message: `${quoteId(id)}: ${message}` })
  }

  #ran(note: Extract<Note, { kind: 'ran' }>): void {
    const { id, run, token, at, attempts, maxAttempts } = note
    this.#runCount++
    into(this.#runs, id).add(run)
    listIn(this.#runsOf, id).push({ token, at })
    if (attempts > maxAttempts) this.#fail('attempts', id, `attempt ${attempts} of ${maxAttempts} was made`)
    if (familyOf(id).stays) into(this.#makers, id).add(incarnation(note))
  }

  #read({ name, notes }: Diary): void {
    const open = new Map<number, Extract<Note, { kind: 'call' }>>()
    /** Leases by id and generation, of this process. */
    const leases = new Map<string, Lease>()
    for (const note of notes) {
      switch (note.kind) {
        case 'call':
          this.#calls[note.op]++
          open.set(note.n, note)
          break
        case 'answer': {
          const call = open.get(note.n)
          open.delete(note.n)
          if (call !== undefined) this.#answered(call, note)
          break
        }
        case 'leased':
          this.#leased(leases, note)
          break
        case 'unleased': {
          const lease = leases.get(leaseKey(note.id, note.generation))
          if (lease !== undefined) {
            lease.until = Math.min(lease.until, note.at)
            lease.givenUp = true
          }
          this.#givenUp.set(leaseKey(note.id, note.generation), note.at)
          break
        }
        case 'completed':
          this.#won(note.id, note.result)
          into(this.#settled, note.id).add(generationOf(note.result.run))
          break
        case 'failed':
          if (familyOf(note.id).ends !== 'failed') this.#fail('one verdict', note.id, 'failed, which it never should')
          break
        case 'problem':
          this.#violations.push({ oracle: 'answers', message: note.message })
          break
        default:
      }
    }
    const ended = notes.at(-1)?.kind === 'down'
    if (!ended) return
    for (const { op, id } of open.values()) this.#fail('answers', id, `${op} was never answered (${name})`)
  }

  #leased(leases: Map<string, Lease>, note: { id: string; generation: string; at: number } & Belief): void {
    const { id, generation, at, asked, until } = note
    const key = leaseKey(id, generation)
    const known = leases.get(key)
    if (known?.givenUp === true) return
    if (known !== undefined && known.until >= asked) {
      known.until = Math.max(known.until, until)
      return
    }
    const lease = { generation, since: at, asked, until, givenUp: false }
    leases.set(key, lease)
    listIn(this.#leases, id).push(lease)
  }

  #answered(call: Extract<Note, { kind: 'call' }>, answer: Extract<Note, { kind: 'answer' }>): void {
    const { op, id, token } = call
    if ('code' in answer) {
      this.#errors[answer.code] = (this.#errors[answer.code] ?? 0) + 1
      if (!fits(op, id, answer.code)) this.#fail('answers', id, `${op} was answered with ${answer.code}`)
      return
    }
    if (answer.result !== undefined) this.#won(id, answer.result)
    if (op === 'enqueue' || op === 'wait') this.#acknowledged.add(id)
    if (op === 'enqueue' && answer.status === 'queued') {
      this.#created.set(id, (this.#created.get(id) ?? 0) + 1)
      this.#madeAt.set(`${id} ${token}`, answer.at)
    }
    if (op === 'cancel' && answer.status === 'cancelled') {
      this.#cancels.push({ id, asked: call.at, answered: answer.at })
    }
  }

  #won(id: string, result: Result): void {
    if (this.#runs.get(id)?.has(result.run) !== true) this.#fail('answers', id, `nobody ran ${result.run}`)
    if (familyOf(id).ends !== 'completed') this.#fail('one verdict', id, 'completed, which it never should')
    into(this.#winners, `${id} ${incarnation(result)}`).add(result.run)
    if (familyOf(id).stays) into(this.#makers, id).add(incarnation(result))
  }

  #finals(): void {
    for (const id of this.#acknowledged) {
      const { stays, ends } = familyOf(id)
      if (!stays) continue
      const record = this.#evidence.finals.get(id) ?? null
      if (record === null || record.state !== ends) {
        this.#fail('conservation', id, `was acknowledged, and is ${record?.state ?? 'absent'}`)
        continue
      }
      if (record.attempts > record.spec.maxAttempts) this.#fail('attempts', id, `${record.attempts} were made`)
      if (record.state !== 'completed') continue
      if (record.result === null) this.#fail('conservation', id, 'has lost its result')
      else this.#won(id, JSON.parse(String(record.result)) as Result)
    }
  }

  #onceEach(): void {
    for (const [id, count] of this.#created) {
      if (count > 1 && familyOf(id).stays) this.#fail('no replacement', id, `was created ${count} times`)
    }
    for (const [id, makers] of this.#makers) {
      if (makers.size > 1) this.#fail('no replacement', id, `had the records ${[...makers].join(' and ')}`)
    }
    for (const [key, runs] of this.#winners) {
      if (runs.size > 1) this.#fail('one verdict', key, `was settled by ${[...runs].join(' and ')}`)
    }
  }

  /** No lease begins while another is believed in. A dead owner's counts, too: nobody could give it up. */
  #overlaps(): void {
    const slack = (this.#evidence.toleranceMs + clockMs) * 1_000
    for (const [id, leases] of this.#leases) {
      leases.sort((one, other) => one.since - other.since)
      let last: Lease | null = null
      for (const lease of leases) {
        // Who hears of its lease after the end of it never believed in it.
        if (lease.until <= lease.since) continue
        if (last !== null && last.generation !== lease.generation && lease.since < last.until - slack) {
          const ms = ((last.until - lease.since) / 1_000).toFixed(1)
          this.#fail('one lease', id, `${lease.generation} began ${ms} ms before the end of ${last.generation}`)
        }
        if (last === null || lease.until > last.until) last = lease
      }
    }
  }

  /** Whoever stored a result had not been followed by another when it asked to. */
  #fenced(): void {
    const slack = (this.#evidence.toleranceMs + clockMs) * 1_000
    for (const [id, generations] of this.#settled) {
      const leases = this.#leases.get(id) ?? []
      for (const generation of generations) {
        const own = leases.find((lease) => lease.generation === generation)
        const asked = this.#givenUp.get(leaseKey(id, generation))
        if (own === undefined || asked === undefined) continue
        const later = leases.find(
          (lease) => lease.generation !== generation && lease.asked > own.since && lease.since + slack < asked,
        )
        if (later !== undefined) {
          this.#fail('fencing', id, `${generation} settled it though ${later.generation} had taken it over`)
        }
      }
    }
  }

  #cancelled(): void {
    for (const { id, asked, answered } of this.#cancels) {
      for (const { token, at } of this.#runsOf.get(id) ?? []) {
        const madeAt = this.#madeAt.get(`${id} ${token}`)
        if (at > answered && madeAt !== undefined && madeAt < asked) {
          this.#fail('cancel', id, `the payload of ${token} ran ${at - answered} us after it was cancelled`)
        }
      }
    }
  }
}

/** Errors that a call may be answered with while faults are made. */
function fits(op: Operation, id: string, code: string): boolean {
  const { stays, ends, name } = familyOf(id)
  switch (code) {
    case 'ASKONCE_STORAGE':
    case 'ASKONCE_STOPPED':
      return true
    case 'ASKONCE_JOB_FAILED':
      return (op === 'wait' || op === 'run') && ends === 'failed'
    case 'ASKONCE_JOB_CANCELLED':
      return op === 'wait' && name === 'dropped'
    case 'ASKONCE_RESULT_GONE':
      return (op === 'wait' || op === 'run') && !stays
    default:
      return false
  }
}

function incarnation({ token, createdAt }: Made): string {
  return `${token}@${createdAt}`
}

function generationOf(run: string): string {
  return run.slice(0, run.lastIndexOf('/'))
}

function leaseKey(id: string, generation: string): string {
  return `${generation} ${id}`
}

function into(map: Map<string, Set<string>>, key: string): Set<string> {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = new Set<string>()
  map.set(key, made)
  return made
}

function listIn<T>(map: Map<string, T[]>, key: string): T[] {
  const known = map.get(key)
  if (known !== undefined) return known
  const made: T[] = []
  map.set(key, made)
  return made
}
