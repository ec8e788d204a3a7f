/**
 * What came of one VIN, for whoever asked.
 *
 * @module
 */

import { AskonceError, JobFailedError } from '../../errors.ts'
import type { VinAccepted, VinProblem, VinRefused, VinWarning } from './check.ts'
import { type DecodedClass, type RefusedClass, vinClasses } from './classes.ts'
import type { VinErrorDetails } from './errors.ts'
import type { DecodedVin } from './row.ts'

/**
 * Where an answer came from. `local`: no question was asked. `cache`: it was there already. `shared`: somebody else had just
 * asked. `asked`: it was asked for because of this call.
 */
export type AnswerOrigin = 'local' | 'cache' | 'shared' | 'asked'

interface OutcomeBase {
  /** As it was given. */
  readonly raw: unknown
  /** Normalised; for what is no VIN, what normalising left of it. */
  readonly vin: string
  /** Null for what is no VIN. */
  readonly id: string | null
  readonly origin: AnswerOrigin
  readonly warnings: readonly VinWarning[]
  /** What may have been meant, likeliest first, vPIC's suggestion before our own; for people, never applied. */
  readonly suggestions: readonly string[]
}

/** Make and model are known. */
export interface DecodedOutcome extends OutcomeBase {
  readonly ok: true
  readonly class: DecodedClass
  readonly decoded: DecodedVin
}

/** The VIN is none, or vPIC could not tell, or it was not to be had. */
export interface RefusedOutcome extends OutcomeBase {
  readonly ok: false
  readonly class: RefusedClass | 'UPSTREAM' | 'THROTTLED' | 'BATCH_GAP'
  readonly message: string
  /** For LOCAL_INVALID found before asking. */
  readonly problems: readonly VinProblem[]
  /** For all others. */
  readonly details: VinErrorDetails | null
}

/** The job's end was not seen: a time-out, a stop, a storage in trouble. Says nothing of the VIN; ask again. */
export interface UndecidedOutcome extends OutcomeBase {
  readonly ok: false
  readonly class: 'UNDECIDED'
  readonly message: string
  readonly error: AskonceError
}

/** What came of one VIN; told apart by `ok` and `class`. */
export type VinOutcome = DecodedOutcome | RefusedOutcome | UndecidedOutcome

/** The class an outcome can have. */
export type OutcomeClass = VinOutcome['class']

/** One that could be asked for. */
export interface AskedVin {
  readonly raw: unknown
  readonly check: VinAccepted
  readonly id: string
}

/** For text that is no VIN. */
export function refusedLocally(raw: unknown, check: VinRefused): RefusedOutcome {
  const { vin, problems, suggestions } = check
  const { message } = problems[0]
  return {
    ok: false,
    class: 'LOCAL_INVALID',
    raw,
    vin,
    id: null,
    origin: 'local',
    warnings: [],
    suggestions,
    message,
    problems,
    details: null,
  }
}

/** For a result. */
export function decodedOutcome(asked: AskedVin, decoded: DecodedVin, origin: AnswerOrigin): DecodedOutcome {
  return { ok: true, class: decoded.class, ...base(asked, origin, decoded.suggestedVin), decoded }
}

/** For whatever the wait rejected with. Null if that is no matter of this VIN's job, and is to be thrown on. */
export function failedOutcome(
  asked: AskedVin,
  thrown: unknown,
  origin: AnswerOrigin,
): RefusedOutcome | UndecidedOutcome | null {
  const details = thrown instanceof JobFailedError ? detailsOf(thrown.cause) : null
  if (details !== null) {
    const { message } = (thrown as JobFailedError).cause as Error
    const suggested = details.suggestedVin ?? null
    return { ok: false, class: details.class, ...base(asked, origin, suggested), message, problems: [], details }
  }
  if (!(thrown instanceof AskonceError)) return null
  return undecided(asked.raw, base(asked, origin, null), thrown)
}

/** For a row that could not even be asked for. */
export function undecided(
  raw: unknown,
  known: Partial<Omit<OutcomeBase, 'raw'>>,
  error: AskonceError,
): UndecidedOutcome {
  const empty = { vin: '', id: null, origin: 'local', warnings: [], suggestions: [] } as const
  return { ok: false, class: 'UNDECIDED', ...empty, ...known, raw, message: error.message, error }
}

function base({ raw, check, id }: AskedVin, origin: AnswerOrigin, suggestedVin: string | null): OutcomeBase {
  const { vin, warnings, suggestions } = check
  const all = suggestedVin === null ? suggestions : [...new Set([suggestedVin, ...suggestions])]
  return { raw, vin, id, origin, warnings, suggestions: all }
}

/** The details of a VinDecodeError, which may have been thrown by another process and release. */
function detailsOf(error: unknown): VinErrorDetails | null {
  if (!(error instanceof Error) || error.name !== 'VinDecodeError') return null
  const { details } = error as { details?: unknown }
  if (typeof details !== 'object' || details === null) return null
  const name = (details as { class?: unknown }).class
  return vinClasses.some((known) => known === name) ? (details as VinErrorDetails) : null
}
