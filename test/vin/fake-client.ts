import { VinDecodeError, type VinErrorDetails, type VpicClient, type VpicQuery } from '../../src/presets/vin/index.ts'
import { matchRows } from '../../src/presets/vin/match.ts'
import { flatRow } from '../support/vpic/index.ts'

/** A failure of the class. */
export function failure(name: VinErrorDetails['class'], more: Partial<VinErrorDetails> = {}): VinDecodeError {
  return new VinDecodeError(`a failure of class ${name}`, { class: name, reason: 'status', ...more })
}

/** Decides what becomes of a call: throws, or answers which of its VINs get no row. */
export type FakeRule = (vins: readonly string[], call: number) => readonly string[] | undefined | Promise<never>

/** A client without a network. */
export class FakeClient implements VpicClient {
  /** The VINs of each call. */
  readonly calls: (readonly string[])[] = []
  rule: FakeRule

  constructor(rule: FakeRule = () => undefined) {
    this.rule = rule
  }

  async decode(query: VpicQuery): Promise<Record<string, unknown>> {
    const missing = await this.#call([query])
    if (missing.includes(query.vin)) throw failure('UPSTREAM', { reason: 'row' })
    return flatRow(query.vin, query.modelYear ?? null)
  }

  async decodeBatch(queries: readonly VpicQuery[]): Promise<ReturnType<typeof matchRows>> {
    const missing = await this.#call(queries)
    const vins = queries.map(({ vin }) => vin)
    const rows = queries.map(({ vin, modelYear }) => flatRow(vin, modelYear ?? null))
    return matchRows(
      vins,
      rows.filter((row) => !missing.includes(row['VIN'] ?? '')),
    )
  }

  async #call(queries: readonly VpicQuery[]): Promise<readonly string[]> {
    const vins = queries.map(({ vin }) => vin)
    this.calls.push(vins)
    return (await this.rule(vins, this.calls.length)) ?? []
  }
}
