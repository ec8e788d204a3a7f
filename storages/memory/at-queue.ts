/**
 * A priority queue by time that is nearly free for what nearly always happens: entries arriving in the order of their time.
 * Those go to the end of a linked list (O(1) to add, take and remove, whatever the depth); the others to an indexed heap
 * (O(log n)). Entries carry their own links, so that any can be removed without a search and leave nothing behind.
 *
 * @module
 */

/** Where an entry is, in {@link AtEntry.slot}; 0 and up is its place in the heap. */
const nowhere = -2
const inList = -1

/** What an {@link AtQueue} keeps; extend it with what it stands for. Only the queue writes its fields. */
export class AtEntry<Self extends AtEntry<Self>> {
  /** The time it is ordered by. */
  at = 0
  /** Order of arrival; decides between equal times. */
  order = 0
  prev: Self | null = null
  next: Self | null = null
  slot = nowhere
}

/** Orders entries by `at`, then by arrival. An entry is in one queue at a time. */
export class AtQueue<Entry extends AtEntry<Entry>> {
  #head: Entry | null = null
  #tail: Entry | null = null
  readonly #heap: Entry[] = []
  #listed = 0

  get size(): number {
    return this.#listed + this.#heap.length
  }

  /**
   * Adds an entry that is in no queue.
   *
   * @param mayEndList - false for a time far ahead, which at the list's end would send all that come before it to the heap
   */
  add(entry: Entry, at: number, order: number, mayEndList: boolean): void {
    entry.at = at
    entry.order = order
    const tail = this.#tail
    if (tail === null ? mayEndList : before(tail, entry) && mayEndList) {
      entry.slot = inList
      entry.prev = tail
      entry.next = null
      if (tail === null) this.#head = entry
      else tail.next = entry
      this.#tail = entry
      this.#listed++
    } else {
      this.#heap.push(entry)
      this.#rise(entry, this.#heap.length - 1)
    }
  }

  /** Removes an entry; harmless when it is in no queue. */
  remove(entry: Entry): void {
    if (entry.slot === inList) {
      const { prev, next } = entry
      if (prev === null) this.#head = next
      else prev.next = next
      if (next === null) this.#tail = prev
      else next.prev = prev
      entry.prev = null
      entry.next = null
      this.#listed--
    } else if (entry.slot >= 0) {
      const last = this.#heap.pop() as Entry
      if (last !== entry) {
        const hole = entry.slot
        this.#rise(last, hole)
        if (last.slot === hole) this.#sink(last, hole)
      }
    }
    entry.slot = nowhere
  }

  /** The first entry, or null. */
  peek(): Entry | null {
    const head = this.#head
    const root = this.#heap[0]
    if (root === undefined) return head
    return head === null || before(root, head) ? root : head
  }

  #rise(entry: Entry, from: number): void {
    const heap = this.#heap
    let slot = from
    while (slot > 0) {
      const parentSlot = (slot - 1) >> 2
      const parent = heap[parentSlot] as Entry
      if (!before(entry, parent)) break
      heap[slot] = parent
      parent.slot = slot
      slot = parentSlot
    }
    heap[slot] = entry
    entry.slot = slot
  }

  #sink(entry: Entry, from: number): void {
    const heap = this.#heap
    const length = heap.length
    let slot = from
    for (;;) {
      const first = slot * 4 + 1
      if (first >= length) break
      let leastSlot = first
      let least = heap[first] as Entry
      const end = Math.min(first + 4, length)
      for (let child = first + 1; child < end; child++) {
        const candidate = heap[child] as Entry
        if (before(candidate, least)) {
          least = candidate
          leastSlot = child
        }
      }
      if (!before(least, entry)) break
      heap[slot] = least
      least.slot = slot
      slot = leastSlot
    }
    heap[slot] = entry
    entry.slot = slot
  }
}

/** Whether `a` comes before `b`. */
export function before(a: { at: number; order: number }, b: { at: number; order: number }): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
