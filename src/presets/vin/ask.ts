/**
 * Asks vPIC for several VINs and comes back with an answer for each: one batch call, gaps singly, a rejected batch halved
 * until the culprit stands alone. Knows nothing of queues.
 *
 * @module
 */

import type { VpicClient, VpicQuery } from './client.ts'
import { VinDecodeError } from './errors.ts'
import type { VpicRow } from './row.ts'

/** What came of one VIN. */
export type Answer = { readonly row: VpicRow } | { readonly error: VinDecodeError }

/** How to ask. */
export interface AskOptions {
  readonly client: VpicClient
  readonly signal: AbortSignal
  /** Called before each call with the VINs in it; may delay it. */
  readonly before: (vins: readonly string[]) => Promise<void>
  /** Whether gaps of a batch are asked for singly at once; otherwise they are answered as BATCH_GAP. */
  readonly gapsSingly: boolean
  /**
   * Whether a batch is halved too when the service failed on its content (broken answers, not silence): done when no attempt
   * is left, so that one VIN that the service chokes on does not fail fifty.
   */
  readonly halveFailures: boolean
}

/** Single VINs in a row that may be rejected, none accepted, before the request as such is to blame and not a VIN. */
const rejectedSinglesMax = 4

/**
 * Asks. VINs must differ.
 *
 * @returns an answer for each VIN
 * @throws the signal's reason
 */
export async function ask(queries: readonly VpicQuery[], options: AskOptions): Promise<Map<string, Answer>> {
  const asking = new Asking(options)
  await asking.part(queries)
  return asking.answers
}

class Asking {
  readonly answers = new Map<string, Answer>()
  readonly #options: AskOptions
  /** Set when asking on would be pointless or rude: the rest gets this answer without a call. */
  #stop: VinDecodeError | null = null
  #accepted = false
  #rejectedSingles = 0

  constructor(options: AskOptions) {
    this.#options = options
  }

  async part(queries: readonly VpicQuery[]): Promise<void> {
    if (queries.length === 0) return
    if (this.#stop !== null) this.#fail(queries, this.#stop)
    else if (queries.length === 1) await this.#single(queries[0]!)
    else await this.#batch(queries)
  }

  async #single(query: VpicQuery): Promise<void> {
    const { client, signal } = this.#options
    try {
      await this.#options.before([query.vin])
      this.answers.set(query.vin, { row: await client.decode(query, { signal }) })
      this.#accepted = true
    } catch (thrown) {
      const error = this.#errorOf(thrown)
      this.#fail([query], error)
      this.#rejectedSingles++
      const hopeless = !this.#accepted && this.#rejectedSingles >= rejectedSinglesMax
      // A service in trouble is not asked on; a single rejected VIN says nothing of the next.
      if (hopeless || error.code !== 'REQUEST_BUG') this.#stopUnlessHalving(error, hopeless)
    }
  }

  #stopUnlessHalving(error: VinDecodeError, hopeless: boolean): void {
    if (hopeless || !this.#halves(error)) this.#stop = error
  }

  async #batch(queries: readonly VpicQuery[]): Promise<void> {
    const { client, signal, gapsSingly } = this.#options
    const byVin = new Map(queries.map((query) => [query.vin, query]))
    let gaps: readonly string[]
    try {
      await this.#options.before(queries.map(({ vin }) => vin))
      const matched = await client.decodeBatch(queries, { signal })
      for (const [vin, row] of matched.rows) if (byVin.has(vin)) this.answers.set(vin, { row })
      this.#accepted = true
      gaps = matched.gaps
    } catch (thrown) {
      await this.#batchFailed(queries, this.#errorOf(thrown))
      return
    }
    for (const vin of gaps) {
      const query = byVin.get(vin)
      if (query === undefined) continue
      if (gapsSingly) await this.part([query])
      else this.#fail([query], gapError())
    }
    // A client of the caller's own may have left a VIN out of both.
    for (const query of queries) if (!this.answers.has(query.vin)) this.#fail([query], gapError())
  }

  async #batchFailed(queries: readonly VpicQuery[], error: VinDecodeError): Promise<void> {
    if (!this.#halves(error)) {
      this.#stop = error
      this.#fail(queries, error)
      return
    }
    const middle = Math.ceil(queries.length / 2)
    await this.part(queries.slice(0, middle))
    await this.part(queries.slice(middle))
  }

  /** Whether a smaller batch may fare better. */
  #halves(error: VinDecodeError): boolean {
    if (error.code === 'REQUEST_BUG') return true
    const { reason } = error.details
    const silent = reason === 'timeout' || reason === 'network'
    return error.code === 'UPSTREAM' && this.#options.halveFailures && !silent
  }

  #fail(queries: readonly VpicQuery[], error: VinDecodeError): void {
    for (const { vin } of queries) this.answers.set(vin, { error })
  }

  #errorOf(thrown: unknown): VinDecodeError {
    if (this.#options.signal.aborted) throw this.#options.signal.reason
    if (thrown instanceof VinDecodeError) return thrown
    return new VinDecodeError('the client failed', { class: 'UPSTREAM', reason: 'client' }, { cause: thrown })
  }
}

function gapError(): VinDecodeError {
  return new VinDecodeError('vPIC: the batch has no row, or two, for this VIN', { class: 'BATCH_GAP', reason: 'row' })
}
