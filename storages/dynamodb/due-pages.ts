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

/** Entries that one look reads at most. */
const sizeMax = 1_000

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
  readonly #outdated: Outdated
  #page = pageStart

  constructor(options: { read: ReadShard<E>; random: () => number; lookaheadMs: number; outdated: Outdated }) {
    this.#read = options.read
    this.#random = options.random
    this.#lookaheadMs = options.lookaheadMs
    this.#outdated = options.outdated
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
   * At most `limit` entries that are due at `now`, at random from what was found; and when to look again: at `now` if more
   * are due, else when the next seen becomes due, else when what was not looked at may; null without looking ahead.
   */
  async find(limit: number, now: number, shards: number): Promise<{ entries: E[]; nextAt: number | null }> {
    const found: E[] = []
    let nextAt = now + this.#lookaheadMs
    const first = Math.floor(this.#random() * shards)
    let count = 0
    for (; count < shards && found.length < limit; count++) {
      const { due, later, more } = await this.#look((first + count) % shards, now, limit - found.length)
      found.push(...due)
      if (more) nextAt = now
      else if (later !== null) nextAt = Math.min(nextAt, later)
    }
    // A shard that was not looked into may have what is due, too.
    if (found.length > limit || count < shards) nextAt = now
    return { entries: this.#pick(found, limit), nextAt: this.#lookaheadMs === 0 ? null : nextAt }
  }

  /** What of one shard is due, when the next there becomes so, and whether more may be due. */
  async #look(shard: number, now: number, wanted: number): Promise<{ due: E[]; later: number | null; more: boolean }> {
    for (let size = Math.max(this.page, wanted); ; size = Math.min(sizeMax, size * 2)) {
      const read = await this.#read(shard, now + this.#lookaheadMs, size)
      const fresh = read.filter(({ version }) => !this.#outdated.has(version))
      const due = fresh.filter((entry) => entry.due <= now)
      const more = read.length === size && read.at(-1)!.due <= now
      // A page full of what is known to be outdated hides what is behind it.
      if (due.length >= wanted || !more || size === sizeMax) {
        return { due, later: fresh.find((entry) => entry.due > now)?.due ?? null, more }
      }
    }
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
