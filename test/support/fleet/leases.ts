/**
 * Notes every lease that a process believes in: from its answer on, until its length after the request, or until it is given up.
 *
 * @module
 */

import type { Storage, StorageHandle } from '../../../src/storage.ts'
import type { NoteContent } from './notes.ts'
import { monotonicUs } from './notes.ts'

/** The storage, with its leases noted. */
export function notingLeases(inner: Storage, note: (note: NoteContent) => void): Storage {
  function leased(id: string, generation: string, asked: number, leaseMs: number): void {
    note({ kind: 'leased', id, generation, asked, until: asked + leaseMs * 1_000 })
  }

  function noting(handle: StorageHandle): StorageHandle {
    const noted: Partial<StorageHandle> = {
      async enqueue(items) {
        const asked = monotonicUs()
        const answers = await handle.enqueue(items)
        for (const [index, { spec, lease }] of items.entries()) {
          if (lease !== null && answers.answers[index]?.leased === true) {
            leased(spec.id, lease.generation, asked, lease.leaseMs)
          }
        }
        return answers
      },
      async claim(request) {
        const asked = monotonicUs()
        const answer = await handle.claim(request)
        for (const { spec, generation } of answer.jobs) leased(spec.id, generation, asked, request.leaseMs)
        return answer
      },
      async extend(items) {
        const asked = monotonicUs()
        const answers = await handle.extend(items)
        for (const [index, { id, generation, leaseMs }] of items.entries()) {
          if (answers[index] === 'extended') leased(id, generation, asked, leaseMs)
        }
        return answers
      },
      async settle(items, claim) {
        const asked = monotonicUs()
        for (const { id, generation } of items) note({ kind: 'unleased', id, generation })
        const answer = await handle.settle(items, claim)
        if (claim !== null) {
          for (const { spec, generation } of answer.claim?.jobs ?? []) {
            leased(spec.id, generation, asked, claim.leaseMs)
          }
        }
        return answer
      },
    }
    return forwarding(handle, noted)
  }

  return { traits: inner.traits, open: async (namespace) => noting(await inner.open(namespace)) }
}

/** A handle that does some things itself, and has another do the rest. */
function forwarding(handle: StorageHandle, own: Partial<StorageHandle>): StorageHandle {
  return new Proxy(handle, {
    get(target, name) {
      const method = (Object.hasOwn(own, name) ? own : target)[name as keyof StorageHandle]
      return typeof method === 'function' ? method.bind(target) : method
    },
  })
}
