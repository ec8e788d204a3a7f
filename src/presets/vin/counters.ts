/**
 * What makes waste visible: how much was asked of vPIC for how many vehicles.
 *
 * @module
 */

/** What a decoder has counted since it was made. Sum them over all processes that share a storage. */
export interface VinCounters {
  /** Jobs that this decoder's calls created: VINs nobody had asked for within their TTL. */
  readonly decode_jobs_claimed: number
  /** Calls that met a job or an answer that was there already. */
  readonly decode_jobs_deduped: number
  /** VINs sent to vPIC by this decoder's worker; each time one is sent counts, fifty in a batch are fifty. */
  readonly decode_jobs_upstream: number
  /** Answers of this worker that were refused because the job had another lease by then. */
  readonly decode_jobs_stale_ignored: number
  /** HTTP requests sent to vPIC. */
  readonly vpic_calls: number
  /** Jobs whose request itself vPIC refused: a fault of ours or a change of theirs. More than 0 is an alarm. */
  readonly request_bugs: number
  /**
   * VINs sent to vPIC per different VIN among them, over the last 100,000 different ones; null before the first. 1 is
   * perfect; retries, gaps and expired answers raise it; well above 1.2 means that keys are unstable or TTLs too short.
   */
  readonly upstream_per_unique: number | null
}

/** Different VINs remembered before the window begins anew. */
const windowMax = 100_000

/** Counts what is sent. */
export class UpstreamMeter {
  vins = 0
  calls = 0
  requestBugs = 0
  #window = new Set<string>()
  #windowVins = 0
  #lastRatio: number | null = null

  /** A call with these VINs is about to be sent. */
  count(vins: readonly string[]): void {
    this.calls++
    this.vins += vins.length
    if (this.#window.size >= windowMax) {
      this.#lastRatio = this.ratio
      this.#window = new Set()
      this.#windowVins = 0
    }
    this.#windowVins += vins.length
    for (const vin of vins) this.#window.add(vin)
  }

  /** VINs sent per different VIN. */
  get ratio(): number | null {
    return this.#window.size === 0 ? this.#lastRatio : this.#windowVins / this.#window.size
  }
}
