/**
 * A client of NHTSA's vPIC: two calls, typed failures, no retry of its own (the queue's is the only one).
 *
 * @module
 */

import { guardDuration, guardInteger, InvalidArgumentError } from '../../errors.ts'
import { limits } from '../../limits.ts'
import { rowsOf } from './envelope.ts'
import { exchange, type Fetch, type HttpSettings, upstream } from './http.ts'
import { modelYearOf } from './id.ts'
import { type MatchedRows, matchRows } from './match.ts'
import type { VpicRow } from './row.ts'

/** One vehicle asked for. */
export interface VpicQuery {
  /** Normalised; whole, or partial with `*` for unknown characters. */
  readonly vin: string
  /** Helps vPIC where the VIN leaves the year open; null or absent for none. */
  readonly modelYear?: number | null
}

/** What can be set on one call. */
export interface VpicCallOptions {
  readonly signal?: AbortSignal
}

/** What the decoder asks of a client; {@link createVpicClient} makes one. */
export interface VpicClient {
  /**
   * Asks for one vehicle.
   *
   * @throws VinDecodeError of class THROTTLED, UPSTREAM or REQUEST_BUG; the signal's reason
   */
  decode(query: VpicQuery, options?: VpicCallOptions): Promise<VpicRow>
  /**
   * Asks for up to 50 vehicles of different VINs in one call. Rows are matched by VIN, whatever order they come in.
   *
   * @throws as `decode`
   */
  decodeBatch(queries: readonly VpicQuery[], options?: VpicCallOptions): Promise<MatchedRows>
}

/** What can be set on a client. */
export interface VpicClientOptions {
  /** Default: NHTSA's. May be a proxy's, http or https, without credentials, query or fragment. */
  readonly baseUrl?: string | URL
  /** Default: the global one. */
  readonly fetch?: Fetch
  /** From sending to the last byte, ms. Answers after 15 s and more are no failure. Default: 60,000. */
  readonly timeoutMs?: number
  /** Sent along, such as a gateway's key. */
  readonly headers?: Readonly<Record<string, string>>
  /** Ask DecodeVinValuesExtended for single VINs: more fields. Default: false. */
  readonly extended?: boolean
  /** Bytes of an answer. Default: 16 MiB; fifty rows take less than one. */
  readonly bodyBytesMax?: number
}

/** NHTSA's public service. */
export const vpicBaseUrl = 'https://vpic.nhtsa.dot.gov/api/vehicles/'

/** VINs in one batch call, by NHTSA's documentation. */
export const vpicBatchMax = 50

/**
 * Makes a client.
 *
 * @throws InvalidArgumentError that names the option
 */
export function createVpicClient(options: VpicClientOptions = {}): VpicClient {
  const base = guardBaseUrl(options.baseUrl ?? vpicBaseUrl)
  const timeoutMs = options.timeoutMs ?? 60_000
  guardDuration('options.timeoutMs', timeoutMs, limits.timerMsMax)
  const bodyBytesMax = options.bodyBytesMax ?? 16 * 1024 * 1024
  guardInteger('options.bodyBytesMax', bodyBytesMax, 1, Number.MAX_SAFE_INTEGER)
  const fetch = options.fetch ?? ((url, init) => globalThis.fetch(url, init))
  if (typeof fetch !== 'function') throw new InvalidArgumentError('options.fetch', 'a function', fetch)
  const headers = { accept: 'application/json', 'user-agent': 'askonce', ...options.headers }
  const settings: HttpSettings = { fetch, timeoutMs, bodyBytesMax, headers }
  const flat = options.extended === true ? 'DecodeVinValuesExtended' : 'DecodeVinValues'

  return {
    async decode({ vin, modelYear }, { signal } = {}) {
      guardVin('query.vin', vin)
      const year = modelYearOf(modelYear, 'query.modelYear')
      const url = `${base}${flat}/${encodeURIComponent(vin)}?format=json${year === null ? '' : `&modelyear=${year}`}`
      const { rows } = matchRows([vin], rowsOf(await exchange(settings, { url }, signal)))
      const row = rows.get(vin)
      if (row === undefined) throw upstream('status 200 without exactly one row of the VIN', 'row', { status: 200 })
      return row
    },
    async decodeBatch(queries, { signal } = {}) {
      guardInteger('queries.length', queries.length, 1, vpicBatchMax)
      const vins = new Set<string>()
      const values = queries.map(({ vin, modelYear }, index) => {
        guardVin(`queries[${index}].vin`, vin)
        if (vins.has(vin)) throw new InvalidArgumentError(`queries[${index}].vin`, 'another VIN than the others', vin)
        vins.add(vin)
        return `${vin},${modelYearOf(modelYear, `queries[${index}].modelYear`) ?? ''}`
      })
      // In the body: `format` in the query string was seen to bring XML. The form escapes what the values hold.
      const form = new URLSearchParams({ format: 'json', DATA: values.join(';') })
      const answer = await exchange(settings, { url: `${base}DecodeVINValuesBatch/`, form }, signal)
      return matchRows([...vins], rowsOf(answer))
    },
  }
}

/** What could end one value of the batch and start another, or walk up the address, never leaves the process. */
function guardVin(field: string, vin: unknown): void {
  if (typeof vin !== 'string' || !/^[0-9A-Z*!]{1,17}$/.test(vin)) {
    throw new InvalidArgumentError(field, 'a normalised VIN: 1 to 17 of 0-9, A-Z and *', vin)
  }
}

function guardBaseUrl(value: string | URL): string {
  const field = 'options.baseUrl'
  const expected = 'an absolute http or https address'
  if (!URL.canParse(String(value))) throw new InvalidArgumentError(field, expected, value)
  const url = new URL(value)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new InvalidArgumentError(field, expected, value)
  if (url.username !== '' || url.password !== '') {
    throw new InvalidArgumentError(field, 'an address without credentials', value, 'Put them in options.headers')
  }
  if (url.search !== '' || url.hash !== '') {
    throw new InvalidArgumentError(field, 'an address without query and fragment', value)
  }
  return url.href.endsWith('/') ? url.href : `${url.href}/`
}
