/**
 * What callers have asked for: whatever happens to a record must have been asked for by somebody.
 *
 * @module
 */

import type { Verdict } from '../../../src/record.ts'
import type { ClaimRequest, EnqueueItem, LeaseTerms, Settlement } from '../../../src/storage.ts'
import type { Call } from './faulty-storage.ts'

/** Everything asked for, by what identifies it. */
export class Asked {
  /** Items of enqueues, by incarnation. */
  readonly items = new Map<string, EnqueueItem>()
  /** Lengths of the leases asked for, by generation. */
  readonly leases = new Map<string, number[]>()
  /** Verdicts, by id and generation. */
  readonly verdicts = new Map<string, Verdict[]>()
  readonly cancels = new Set<string>()
  /** TTLs, by id. */
  readonly touches = new Map<string, Set<number>>()

  /** Takes a call's tokens over. */
  add({ operation, args }: Call): void {
    switch (operation) {
      case 'enqueue':
        for (const item of args[0] as readonly EnqueueItem[]) {
          this.items.set(item.spec.incarnation, item)
          if (item.lease !== null) this.#lease(item.lease)
        }
        return
      case 'claim':
        this.#lease(args[0] as ClaimRequest)
        return
      case 'extend':
        for (const terms of args[0] as readonly LeaseTerms[]) this.#lease(terms)
        return
      case 'settle':
        for (const { id, generation, verdict } of args[0] as readonly Settlement[]) {
          const key = leaseKey(id, generation)
          const verdicts = this.verdicts.get(key)
          if (verdicts === undefined) this.verdicts.set(key, [verdict])
          else if (!verdicts.includes(verdict)) verdicts.push(verdict)
        }
        if (args[1] !== null) this.#lease(args[1] as ClaimRequest)
        return
      case 'cancel':
        for (const id of args[0] as readonly string[]) this.cancels.add(id)
        return
      case 'touch':
        for (const { id, ttlMs } of args[0] as readonly { id: string; ttlMs: number }[]) {
          const ttls = this.touches.get(id)
          if (ttls === undefined) this.touches.set(id, new Set([ttlMs]))
          else ttls.add(ttlMs)
        }
        return
      default:
    }
  }

  #lease({ generation, leaseMs }: LeaseTerms): void {
    const lengths = this.leases.get(generation)
    if (lengths === undefined) this.leases.set(generation, [leaseMs])
    else if (!lengths.includes(leaseMs)) lengths.push(leaseMs)
  }
}

/** Names one lease of one id. */
export function leaseKey(id: string, generation: string): string {
  return `${generation} ${id}`
}
