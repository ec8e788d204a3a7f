/**
 * Finding what is due in the index, among many who look there at once, though the index lags behind the table.
 *
 * If all took the first entries, all would fight for the same ones. So each reads a page that is larger than its need and
 * takes entries at random; the page grows while others are faster and shrinks while they are not. An entry whose version is
 * known to be outdated, as this process wrote a newer one or lost against one, is skipped: versions are never used twice, so
 * nothing good is skipped with it.
 *
 * @module
 */

/** Bounds of a page. It should hold more than is claimed within the index's lag, and than there are workers. */
const pageMin = 10
const pageMax = 200
const pageStart = 25

/** Versions remembered as outdated; the older half is dropped when as many new ones have come. */
const outdatedMax = 20_000

/** How much a page grows when claims were lost, and shrinks when none was. */
const growth = 2
const shrinkage = 0.95

/** An entry of the index. */
export interface Entry {
  readonly key: string
  /** ms since 1970. */
  readonly due: number
  /** The version that it tells of; null if the index does not have it. */
  readonly version: string | null
}

/** Where entries come from: the first `limit` of a shard due up to `until`, earliest first. */
export type ReadShard<E extends Entry> = (shard: number, until: number, limit: number) => Promise<readonly E[]>

/** The versions known to be outdated. */
export class Outdated {
  #new = new Set<string>()
  #old = new Set<string>()

  add(version: string): void {
    this.#new.add(version)
    if (this.#new.size < outdatedMax / 2) return
    this.#old = this.#new
    this.#new = new Set()
  }

  has(version: string | null): boolean {
    return version !== null && (this.#new.has(version) || this.#old.has(version))
  }
}

/** Looks for what is due, over all shards. */
export class DuePages<E extends Entry> {
  readonly #read: ReadShard<E>
  readonly #random: () => number
  readonly #lookaheadMs: number
  readonly outdated = new Outdated()
  #page = pageStart

  constructor(options: { read: ReadShard<E>; random: () => number; lookaheadMs: number }) {
    this.#read = options.read
    this.#random = options.random
    this.#lookaheadMs = options.lookaheadMs
  }

  /** Entries that a page has now. */
  get page(): number {
    return Math.round(this.#page)
  }

  /** Takes in how claims went: that decides the page's size. */
  tried(lost: boolean): void {
    this.#page = Math.min(pageMax, Math.max(pageMin, this.#page * (lost ? growth : shrinkage)))
  }

  /**
   * At most `limit` entries that are due at `now`, at random from what was found.
   *
   * @returns them, and when the next becomes due as far as that was seen
   */
  async find(limit: number, now: number, shards: number): Promise<{ entries: E[]; nextAt: number | null }> {
    const found: E[] = []
    let nextAt: number | null = null
    const first = Math.floor(this.#random() * shards)
    for (let count = 0; count < shards && found.length < limit; count++) {
      const wanted = limit - found.length
      let size = Math.max(this.page, wanted)
      for (;;) {
        const read = await this.#read((first + count) % shards, now + this.#lookaheadMs, size)
        const fresh = read.filter(({ version }) => !this.outdated.has(version))
        const due = fresh.filter((entry) => entry.due <= now)
        // A page full of what is known to be outdated hides what is behind it.
        if (due.length < wanted && read.length === size && read.at(-1)!.due <= now && size < 1_000) {
          size = Math.min(1_000, size * growth)
          this.#page = Math.min(pageMax, Math.max(this.#page, size))
          continue
        }
        for (const entry of fresh) if (entry.due > now) nextAt = Math.min(nextAt ?? entry.due, entry.due)
        found.push(...due)
        break
      }
    }
    return { entries: this.#pick(found, limit), nextAt }
  }

  #pick(entries: E[], limit: number): E[] {
    if (entries.length <= limit) return entries
    // The first steps of a Fisher-Yates shuffle; then as near to the index's order as may be.
    for (let index = 0; index < limit; index++) {
      const other = index + Math.floor(this.#random() * (entries.length - index))
      const entry = entries[index]!
      entries[index] = entries[other]!
      entries[other] = entry
    }
    return entries.slice(0, limit).sort((a, b) => a.due - b.due)
  }
}
