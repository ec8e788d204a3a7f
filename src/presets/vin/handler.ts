/**
 * The batch handler of the decoder's queue: jobs in, an outcome for each out.
 *
 * @module
 */

import { RateLimitedError } from '../../errors.ts'
import type { BatchOutcome, Job } from '../../options.ts'
import { type Answer, type AskOptions, ask } from './ask.ts'
import { checkVin } from './check.ts'
import { type VpicQuery, vpicBatchMax } from './client.ts'
import { VinDecodeError, type VinErrorDetails } from './errors.ts'
import type { VinPolicy } from './policy.ts'
import { type DecodedVin, judgeRow, type RefusedVin } from './row.ts'

/** What a job asks. Plain JSON. */
export interface VinPayload {
  /** Normalised. */
  readonly vin: string
  readonly modelYear: number | null
}

/** What the handler is made of. */
export interface HandlerParts extends Pick<AskOptions, 'client'> {
  readonly policy: VinPolicy
  /** VINs in one call. */
  readonly size: number
  /** Called before each call with the VINs in it; may delay it. */
  readonly before: (vins: readonly string[], signal: AbortSignal) => Promise<void>
  /** Called for each job whose request was itself refused. */
  readonly alarm: (error: VinDecodeError) => void
}

type VinJob = Job<VinPayload>
type Outcome = BatchOutcome<DecodedVin>

/** Makes the handler. */
export function vinHandler(parts: HandlerParts): (jobs: readonly VinJob[]) => Promise<Outcome[]> {
  return async (jobs) => {
    const outcomes = new Map<VinJob, Outcome>()
    const sound: VinJob[] = []
    for (const job of jobs) {
      // Other producers may have enqueued what the decoder would have refused.
      const check = checkVin(job.payload?.vin, { partial: true })
      if (check.ok && check.vin === job.payload.vin) sound.push(job)
      else outcomes.set(job, { error: notAVin(check.ok ? 'not normalised' : check.problems[0].message) })
    }
    const all = whenAllAbort(jobs)
    try {
      for (const round of roundsOf(sound, Math.min(parts.size, vpicBatchMax))) {
        const answers = await askRound(parts, round, all.signal)
        for (const job of round) outcomes.set(job, outcomeOf(parts, answers.get(job.payload.vin)))
      }
    } finally {
      all.release()
    }
    return jobs.map((job) => outcomes.get(job) as Outcome)
  }
}

function askRound(parts: HandlerParts, round: readonly VinJob[], signal: AbortSignal): Promise<Map<string, Answer>> {
  const queries: VpicQuery[] = round.map(({ payload }) => ({ vin: payload.vin, modelYear: payload.modelYear }))
  return ask(queries, {
    client: parts.client,
    signal,
    before: (vins) => parts.before(vins, signal),
    gapsSingly: parts.policy.rules.BATCH_GAP.retry === 'single',
    halveFailures: round.some((job) => job.attempts >= job.maxAttempts),
  })
}

/** Jobs by calls: at most `size` in one, and no VIN twice (with two model years), as rows are told apart by it alone. */
function roundsOf(jobs: readonly VinJob[], size: number): VinJob[][] {
  const rounds: { jobs: VinJob[]; vins: Set<string> }[] = []
  for (const job of jobs) {
    let round = rounds.find(({ jobs, vins }) => jobs.length < size && !vins.has(job.payload.vin))
    if (round === undefined) {
      round = { jobs: [], vins: new Set() }
      rounds.push(round)
    }
    round.jobs.push(job)
    round.vins.add(job.payload.vin)
  }
  return rounds.map(({ jobs }) => jobs)
}

function outcomeOf(parts: HandlerParts, answer: Answer | undefined): Outcome {
  if (answer === undefined) return { error: new Error('no answer') }
  if ('error' in answer) return failureOf(parts, answer.error)
  const judged = judgeRow(answer.row)
  if (judged.kind === 'decoded') return { result: judged.decoded }
  if (judged.kind === 'refused') return { error: refusal(judged.refused) }
  return failureOf(
    parts,
    new VinDecodeError('vPIC: the row has neither data nor a code', { class: 'UPSTREAM', reason: 'row' }),
  )
}

function failureOf({ policy, alarm }: HandlerParts, error: VinDecodeError): Outcome {
  if (error.code === 'REQUEST_BUG') alarm(error)
  if (policy.rules[error.code].retry !== 'hold') return { error }
  const asked = error.details.retryAfterMs ?? policy.holdMs
  // A second at least: "0" is no answer to being asked too often.
  const holdMs = Math.ceil(Math.min(policy.holdMaxMs, Math.max(1_000, asked)))
  return { error: new RateLimitedError(holdMs, { cause: error }) }
}

function refusal(refused: RefusedVin): VinDecodeError {
  const codes = refused.codes.length === 0 ? 'no codes' : `codes ${refused.codes.join(', ')}`
  const { class: name, ...facts } = refused
  const details: VinErrorDetails = { class: name, reason: 'row', ...facts }
  return new VinDecodeError(`vPIC: ${meanings[name]} (${codes})`, details)
}

const meanings: Readonly<Record<RefusedVin['class'], string>> = {
  BAD_VIN: 'not a VIN that can be decoded',
  NO_DATA: 'no details of this vehicle',
  UNKNOWN_MAKER: 'the manufacturer is not registered',
}

function notAVin(problem: string): VinDecodeError {
  return new VinDecodeError(`not a VIN: ${problem}`, { class: 'LOCAL_INVALID', reason: 'local' })
}

/** A signal that aborts when every job's has: one lost lease must not cut the others' call off. */
function whenAllAbort(jobs: readonly VinJob[]): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController()
  const signals = jobs.map((job) => job.signal)
  const onAbort = () => {
    if (signals.every((signal) => signal.aborted)) controller.abort(signals[0]?.reason)
  }
  for (const signal of signals) signal.addEventListener('abort', onAbort)
  onAbort()
  return {
    signal: controller.signal,
    release: () => {
      for (const signal of signals) signal.removeEventListener('abort', onAbort)
    },
  }
}
