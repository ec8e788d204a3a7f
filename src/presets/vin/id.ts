/**
 * The id of one decode: the same for everyone who asks for the same vehicle under the same policy.
 *
 * @module
 */

import { InvalidArgumentError } from '../../errors.ts'
import { contentId } from '../../key.ts'
import { checkVin } from './check.ts'
import { modelYearMax, modelYearMin } from './model-year.ts'
import { defaultPolicy } from './policy.ts'

/** What can be set on {@link vinId}. */
export interface VinIdOptions {
  /** A model year asked for beside the VIN; another one is another question. Default: none. */
  readonly modelYear?: number | null
  /** The policy's version; a new one shares no answers with the old. Default: {@link defaultPolicy}'s. */
  readonly policy?: string
}

/**
 * A content-addressed id of normalised VIN, model year and policy version. It knows nothing of who asks: every upload,
 * webhook, user and retry that means one vehicle has one id.
 *
 * @param vin - raw or normalised, whole or partial
 * @throws InvalidArgumentError for what is no VIN, and for a bad model year or policy
 */
export function vinId(vin: string, options: VinIdOptions = {}): string {
  const check = checkVin(vin, { partial: true })
  if (!check.ok) throw new InvalidArgumentError('vin', 'a VIN', vin, `It is ${check.problems[0].message}`)
  return idOf(check.vin, modelYearOf(options.modelYear), options.policy ?? defaultPolicy.version)
}

/** The same for a VIN that was checked already. */
export function idOf(vin: string, modelYear: number | null, policyVersion: string): string {
  return contentId('vin-decode', policyVersion, { modelYear, vin })
}

/**
 * A model year as it is asked for; null for none.
 *
 * @throws InvalidArgumentError
 */
export function modelYearOf(value: unknown, field = 'options.modelYear'): number | null {
  if (value === undefined || value === null) return null
  if (!Number.isSafeInteger(value) || (value as number) < modelYearMin || (value as number) > modelYearMax) {
    throw new InvalidArgumentError(field, `a year from ${modelYearMin} to ${modelYearMax}`, value)
  }
  return value as number
}
