/**
 * Decodes vehicle identification numbers with NHTSA's vPIC, asking once for each.
 *
 * @module
 */

export { checkDigitOf, passesCheckDigit, vinAlphabet } from './alphabet.ts'
export { DedupeReport, type DedupeSummary, type NearDuplicate, vinCells, vinColumns } from './bulk.ts'
export {
  type CheckOptions,
  checkVin,
  type VinAccepted,
  type VinCheck,
  type VinProblem,
  type VinRefused,
  type VinWarning,
} from './check.ts'
export { type DecodedClass, type RefusedClass, type ServiceClass, type VinClass, vinClasses } from './classes.ts'
export {
  createVpicClient,
  type VpicCallOptions,
  type VpicClient,
  type VpicClientOptions,
  type VpicQuery,
  vpicBaseUrl,
  vpicBatchMax,
} from './client.ts'
export type { VinCounters } from './counters.ts'
export { createVinDecoder, VinDecoder, type VinQueue } from './decoder.ts'
export type { DecodeManyOptions, DecodeOptions, VinDecoderOptions, VinRequest } from './decoder-options.ts'
export { VinDecodeError, type VinErrorDetails } from './errors.ts'
export type { VinPayload } from './handler.ts'
export type { Fetch } from './http.ts'
export { type VinIdOptions, vinId } from './id.ts'
export type { MatchedRows } from './match.ts'
export { modelYearsOf } from './model-year.ts'
export { normalizeVin } from './normalize.ts'
export type {
  AnswerOrigin,
  DecodedOutcome,
  OutcomeClass,
  RefusedOutcome,
  UndecidedOutcome,
  VinOutcome,
} from './outcome.ts'
export {
  defaultPolicy,
  type VinFacts,
  type VinPolicy,
  type VinPolicyChanges,
  type VinRule,
} from './policy.ts'
export { isCheckDigitMandatory, wmiOf } from './region.ts'
export { type DecodedVin, parseCodes, type VpicRow, vpicCodes } from './row.ts'
