/** Storages that are broken in one place, each with the case that must notice. */

import type { Encoded, JobRecord } from '../../src/record.ts'
import { isTerminal } from '../../src/record.ts'
import type { EnqueueItem, HintListener, StorageHandle, StorageTraits } from '../../src/storage.ts'
import type { ReferenceStorageOptions } from '../../storages/conformance/reference.ts'
import { ReferenceStorage } from '../../storages/conformance/reference.ts'

/** A broken storage. */
export interface Mutant {
  readonly name: string
  /** The case that must fail on it. */
  readonly catches: string
  readonly make: (options: ReferenceStorageOptions) => ReferenceStorage
}

/** A handle whose operations can be replaced one by one. */
function delegate(handle: StorageHandle): { -readonly [K in keyof StorageHandle]: StorageHandle[K] } {
  return {
    enqueue: (items) => handle.enqueue(items),
    claim: (request) => handle.claim(request),
    extend: (items) => handle.extend(items),
    settle: (items, claim) => handle.settle(items, claim),
    cancel: (ids) => handle.cancel(ids),
    touch: (items) => handle.touch(items),
    get: (ids) => handle.get(ids),
    watch: (listener) => handle.watch(listener),
    sweep: (limit) => handle.sweep(limit),
    hold: (ms) => handle.hold(ms),
    stats: () => handle.stats(),
    close: () => handle.close(),
  }
}

/** A storage whose handles are partly replaced; `shared` is one object for all handles of the storage. */
function withHandles(
  replace: (handle: StorageHandle, shared: Map<string, unknown>, namespace: string) => Partial<StorageHandle>,
): Mutant['make'] {
  class Broken extends ReferenceStorage {
    readonly #shared = new Map<string, unknown>()

    override async open(namespace: string): Promise<StorageHandle> {
      const handle = await super.open(namespace)
      return Object.assign(delegate(handle), replace(handle, this.#shared, namespace))
    }
  }
  return (options) => new Broken(options)
}

/** A storage that takes namespaces for others. */
function withNames(rename: (namespace: string) => string): Mutant['make'] {
  class Broken extends ReferenceStorage {
    override open(namespace: string): Promise<StorageHandle> {
      return super.open(rename(namespace))
    }
  }
  return (options) => new Broken(options)
}

/** A storage that boasts. */
function withTraits(traits: Partial<StorageTraits>): Mutant['make'] {
  class Broken extends ReferenceStorage {
    override readonly traits = { ...ReferenceStorage.prototype.traits, ...new ReferenceStorage().traits, ...traits }
  }
  return (options) => new Broken(options)
}

/** A storage that takes ids for others. */
function withIds(rename: (id: string) => string): Mutant['make'] {
  const renamed = <T extends { readonly id: string }>(items: readonly T[]): T[] =>
    items.map((item) => ({ ...item, id: rename(item.id) }))
  return withHandles((handle) => ({
    enqueue: (items) =>
      handle.enqueue(items.map((item) => ({ ...item, spec: { ...item.spec, id: rename(item.spec.id) } }))),
    claim: ({ ids, ...request }) =>
      handle.claim(ids === undefined ? request : { ...request, ids: ids.map((id) => rename(id)) }),
    extend: (items) => handle.extend(renamed(items)),
    settle: (items, claim) => handle.settle(renamed(items), claim),
    cancel: (ids) => handle.cancel(ids.map((id) => rename(id))),
    touch: (items) => handle.touch(renamed(items)),
    get: (ids) => handle.get(ids.map((id) => rename(id))),
  }))
}

/** A storage that keeps values otherwise than it got them. */
function withValues(change: (value: Encoded) => Encoded): Mutant['make'] {
  return withHandles((handle) => ({
    enqueue: (items) => handle.enqueue(items.map((item) => ({ ...item, payload: change(item.payload) }))),
  }))
}

/** A storage that reads records otherwise than they are. */
function withReading(change: (record: JobRecord) => JobRecord): Mutant['make'] {
  return withHandles((handle) => ({
    get: async (ids) => {
      const { now, records } = await handle.get(ids)
      return { now, records: records.map((record) => record && change(record)) }
    },
  }))
}

function withHints(passes: (type: string) => boolean): Mutant['make'] {
  return withHandles((handle) => ({
    watch: (listener) => handle.watch((hint) => (passes(hint.type) ? listener(hint) : undefined)),
  }))
}

function tick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function asText(value: Encoded): string {
  return typeof value === 'string' ? value : Buffer.from(value).toString()
}

const storages: Record<string, [catches: string, make: Mutant['make']]> = {
  'inline records are given to workers': [
    'inline: workers do not see it, running, failing, released or with its lease over',
    withHandles((handle, shared) => ({
      enqueue: (items) => {
        for (const { spec, lease } of items) if (lease !== null) shared.set(spec.id, true)
        return handle.enqueue(items)
      },
      claim: (request) => {
        if (request.ids !== undefined || shared.size === 0) return handle.claim(request)
        return handle.claim({ ...request, ids: [...shared.keys()] })
      },
    })),
  ],
  'the hold is ignored': [
    'hold: nothing is leased in a held namespace, by no kind of claim',
    withHandles(() => ({ hold: async () => {} })),
  ],
  'a shorter hold shortens the hold': [
    'hold: the later end counts: a shorter hold never shortens one, a longer one lengthens it',
    withHandles((handle) => ({
      hold: async (ms) => {
        await handle.hold(0)
        await handle.hold(ms)
      },
    })),
  ],
  'no hold is ended by 0': [
    'hold: ends by itself, and 0 ends it at once',
    withHandles((handle) => ({ hold: async (ms) => (ms === 0 ? undefined : handle.hold(ms)) })),
  ],
  'the hold holds settling too': [
    'hold: everything but leasing goes on',
    withHandles((handle) => ({
      settle: async (items, claim) => {
        const { heldForMs } = await handle.stats()
        if (heldForMs === 0) return handle.settle(items, claim)
        return { answers: items.map(() => 'stale' as const), claim: claim === null ? null : await handle.claim(claim) }
      },
    })),
  ],
  'enqueue answers in another order': [
    'enqueue: several in one call, answers in their order',
    withHandles((handle) => ({
      enqueue: async (items) => {
        const { now, answers } = await handle.enqueue(items)
        return { now, answers: answers.toReversed() }
      },
    })),
  ],
  'get answers in another order': [
    'get: each state with its own data, in the order asked, null for the unknown',
    withHandles((handle) => ({
      get: async (ids) => {
        const { now, records } = await handle.get(ids.toSorted())
        return { now, records }
      },
    })),
  ],
  'get leaves out what is not there': [
    'get: each state with its own data, in the order asked, null for the unknown',
    withHandles((handle) => ({
      get: async (ids) => {
        const { now, records } = await handle.get(ids)
        return { now, records: records.filter((record) => record !== null) }
      },
    })),
  ],
  'cancel answers in another order': [
    'cancel: several in one call, answers in their order; an id twice; none, none',
    withHandles((handle) => ({ cancel: async (ids) => (await handle.cancel(ids)).toReversed() })),
  ],
  'settle answers in another order': [
    'settle: several in one call, answers in their order; of one lease twice, too',
    withHandles((handle) => ({
      settle: async (items, claim) => {
        const { answers, claim: claimed } = await handle.settle(items, claim)
        return { answers: answers.toReversed(), claim: claimed }
      },
    })),
  ],
  'settle claims first': [
    'settle: with a claim, settles first and then claims',
    withHandles((handle) => ({
      settle: async (items, claim) => {
        const claimed = claim === null ? null : await handle.claim(claim)
        return { answers: (await handle.settle(items, null)).answers, claim: claimed }
      },
    })),
  ],
  'an id twice in one call is created twice': [
    'enqueue: an id several times in one call is created by exactly the first',
    withHandles((handle) => ({
      enqueue: async (items) => {
        const result = await handle.enqueue(items)
        const made = new Set(
          items.filter((_, index) => result.answers[index]?.outcome === 'created').map(({ spec }) => spec.id),
        )
        const answers = result.answers.map((answer, index) =>
          made.has((items[index] as EnqueueItem).spec.id) ? { ...answer, outcome: 'created' as const } : answer,
        )
        return { now: result.now, answers }
      },
    })),
  ],
  'an id named twice is claimed twice': [
    'claim: an id named several times is answered once',
    withHandles((handle) => ({
      claim: async (request) => {
        const answer = await handle.claim(request)
        const { ids } = request
        if (ids === undefined) return answer
        const jobs = ids.flatMap((id) => answer.jobs.filter(({ spec }) => spec.id === id))
        return { ...answer, jobs }
      },
    })),
  ],
  'claim does not keep to its limit': [
    'claim: without ids takes whatever is due, up to the limit, and nothing twice',
    withHandles((handle) => ({ claim: (request) => handle.claim({ ...request, limit: request.limit + 1 }) })),
  ],
  'claim takes the latest first': [
    'claim: comes by `at`, then order of arrival, where the trait `ordering` says so',
    withHandles((handle) => ({
      claim: async (request) => {
        const answer = await handle.claim(request)
        return { ...answer, jobs: answer.jobs.toReversed() }
      },
    })),
  ],
  'claim does not tell of exhausted jobs': [
    'claim: attempts used up, it is settled as failed and answered as exhausted',
    withHandles((handle) => ({ claim: async (request) => ({ ...(await handle.claim(request)), exhausted: [] }) })),
  ],
  'nextInMs is 0 for nothing': [
    'claim: nextInMs, where told, is never later than the next due record, and never 0 for nothing',
    withHandles((handle) => ({ claim: async (request) => ({ ...(await handle.claim(request)), nextInMs: 0 }) })),
  ],
  'nextInMs is too late': [
    'claim: nextInMs, where told, is never later than the next due record, and never 0 for nothing',
    withHandles((handle) => ({ claim: async (request) => ({ ...(await handle.claim(request)), nextInMs: 9e9 }) })),
  ],
  'claims that name ids forget the payload': [
    'claim: leases a due job with its payload, and counts the attempt',
    withHandles((handle) => ({
      claim: async (request) => {
        const answer = await handle.claim(request)
        return { ...answer, jobs: answer.jobs.map((job) => ({ ...job, payload: '' })) }
      },
    })),
  ],
  'enqueue looks first and writes then': [
    'concurrency: of 200 callers that enqueue one id, exactly one creates it',
    withHandles((handle) => ({
      enqueue: async (items) => {
        const { records } = await handle.get(items.map(({ spec }) => spec.id))
        await tick()
        if (records.every((record) => record === null)) await handle.cancel(items.map(({ spec }) => spec.id))
        return handle.enqueue(items)
      },
    })),
  ],
  'cancel looks first and answers then': [
    'concurrency: cancel against claim: cancelled only what is never leased',
    withHandles((handle) => ({
      cancel: async (ids) => {
        const { records } = await handle.get(ids)
        await tick()
        const answers = await handle.cancel(ids)
        return answers.map((answer, index) => (records[index]?.state === 'queued' ? 'cancelled' : answer))
      },
    })),
  ],
  'text becomes bytes': ['sizes: content and kind are kept, in payloads, results and errors', withValues(Buffer.from)],
  'bytes become text': ['sizes: content and kind are kept, in payloads, results and errors', withValues(asText)],
  'empty text becomes null': [
    'sizes: content and kind are kept, in payloads, results and errors',
    withReading((record) => (record.state === 'completed' ? { ...record, result: record.result || null } : record)),
  ],
  'text is normalised': [
    'sizes: content and kind are kept, in payloads, results and errors',
    withValues((value) => (typeof value === 'string' ? value.normalize('NFC') : value)),
  ],
  'a view is kept with all of its buffer': [
    'sizes: content and kind are kept, in payloads, results and errors',
    withValues((value) => (typeof value === 'string' ? value : new Uint8Array(value.buffer))),
  ],
  'ids are normalised': ['ids: any characters, each id its own, through a whole life', withIds((id) => id.normalize())],
  'ids are in small letters': [
    'ids: any characters, each id its own, through a whole life',
    withIds((id) => id.toLowerCase()),
  ],
  'ids are trimmed': ['ids: any characters, each id its own, through a whole life', withIds((id) => id.trim() || 'x')],
  'ids end at NUL': [
    'ids: any characters, each id its own, through a whole life',
    withIds((id) => id.split('\0')[0] || 'x'),
  ],
  'ids end after 255 characters': [
    'ids: any characters, each id its own, through a whole life',
    withIds((id) => id.slice(0, 255)),
  ],
  'ids are looked up in a plain object': [
    'ids: unknown ones are absent, whatever they look like',
    withHandles((handle) => ({
      get: async (ids) => {
        const { now, records } = await handle.get(ids)
        const plain: Record<string, unknown> = {}
        const found = records.map((record, index) => record ?? plain[ids[index] as string] ?? null)
        return { now, records: found as (JobRecord | null)[] }
      },
    })),
  ],
  'all namespaces are one': ['namespaces: any name, each its own records', withNames(() => 'one')],
  'namespaces are in small letters': [
    'namespaces: any name, each its own records',
    withNames((namespace) => namespace.toLowerCase()),
  ],
  'a hold holds every namespace': [
    'namespaces: a hold holds its own alone',
    withHandles((handle, shared, namespace) => {
      shared.set(namespace, handle)
      return {
        hold: async (ms) => {
          for (const other of shared.values()) await (other as StorageHandle).hold(ms)
        },
      }
    }),
  ],
  'hints reach every namespace': [
    'namespaces: hints stay within',
    withHandles((handle, shared, namespace) => {
      shared.set(namespace, handle)
      return {
        watch: (listener: HintListener) => {
          const unwatch = [...shared.values()].map((other) => (other as StorageHandle).watch(listener))
          return () => {
            for (const end of unwatch) end()
          }
        },
      }
    }),
  ],
  'no hint of what is due': ['watch: tells of what becomes due', withHints((type) => type !== 'due')],
  'no hint of what has ended': [
    'watch: tells of what has ended, to those that wait for it',
    withHints((type) => type !== 'settled'),
  ],
  'no hint of what was cancelled': [
    'watch: tells of what was cancelled, and of which life of the id',
    withHints((type) => type !== 'cancelled'),
  ],
  'unwatch does nothing': [
    'watch: every listener is told, on every handle, until it has unwatched',
    withHandles((handle) => ({
      watch: (listener) => {
        handle.watch(listener)
        return () => {}
      },
    })),
  ],
  'a closed handle still hears': [
    'watch: a closed handle’s listeners hear no more, others go on',
    withHandles((handle, shared, namespace) => {
      const immortal = shared.get(namespace) as StorageHandle | undefined
      if (immortal === undefined) shared.set(namespace, handle)
      return {
        watch: (listener) => (immortal ?? handle).watch(listener),
        close: async () => (immortal === undefined ? undefined : handle.close()),
      }
    }),
  ],
  'TTLs touch every record': [
    'ttl: of one id never touches another',
    withHandles((handle, shared) => ({
      enqueue: (items) => {
        for (const { spec } of items) shared.set(spec.id, true)
        return handle.enqueue(items)
      },
      touch: async (items) => {
        const answers = await handle.touch(items)
        for (const { ttlMs } of items) await handle.touch([...shared.keys()].map((id) => ({ id, ttlMs })))
        return answers
      },
    })),
  ],
  'what is past its end is still read': [
    'ttl: a result is there to the end of its TTL, and not after it',
    withHandles((handle, shared) => ({
      get: async (ids) => {
        const { now, records } = await handle.get(ids)
        const read = records.map((record, index) => {
          const id = ids[index] as string
          if (record !== null && isTerminal(record)) shared.set(id, record)
          return record ?? ((shared.get(id) ?? null) as JobRecord | null)
        })
        return { now, records: read }
      },
    })),
  ],
  'sweep frees nothing': [
    'sweep: of N expired, N cancelled and N retried jobs nothing stays behind',
    withHandles(() => ({ sweep: async () => 0 })),
  ],
  'sweep does not keep to its limit': [
    'sweep: keeps to its limit, and frees nothing that lives',
    withHandles((handle) => ({ sweep: () => handle.sweep(1_000) })),
  ],
  'sweep takes the waiting with it': [
    'sweep: keeps to its limit, and frees nothing that lives',
    withHandles((handle, shared) => ({
      enqueue: (items) => {
        for (const { spec } of items) shared.set(spec.id, true)
        return handle.enqueue(items)
      },
      sweep: async (limit) => {
        await handle.cancel([...shared.keys()] as string[])
        return handle.sweep(limit)
      },
    })),
  ],
  'cancelled records stay in the counts': [
    'stats: counts each state, and follows every change',
    withHandles((handle, shared) => ({
      cancel: async (ids) => {
        const answers = await handle.cancel(ids)
        const before = (shared.get('cancelled') ?? 0) as number
        shared.set('cancelled', before + answers.filter((answer) => answer === 'cancelled').length)
        return answers
      },
      stats: async () => {
        const stats = await handle.stats()
        return { ...stats, queued: (stats.queued ?? 0) + ((shared.get('cancelled') ?? 0) as number) }
      },
    })),
  ],
  'close does nothing': [
    'close: afterwards every operation rejects with StorageClosedError, and changes nothing',
    withHandles(() => ({ close: async () => {} })),
  ],
  'get works after close': [
    'close: afterwards every operation rejects with StorageClosedError, and changes nothing',
    withHandles((handle, shared, namespace) => {
      const first = shared.get(namespace) as StorageHandle | undefined
      if (first === undefined) {
        shared.set(namespace, handle)
        return { close: async () => {} }
      }
      return { get: (ids) => first.get(ids) }
    }),
  ],
  'operations throw after close': [
    'close: operations reject by a promise, never by a throw',
    withHandles((handle) => {
      let closed = false
      return {
        stats: () => {
          if (closed) throw new Error('closed')
          return handle.stats()
        },
        close: () => {
          closed = true
          return handle.close()
        },
      }
    }),
  ],
  'closing twice rejects': [
    'close: twice, also at the same time, is harmless',
    withHandles((handle) => {
      let closed = false
      return {
        close: async () => {
          if (closed) throw new Error('closed already')
          closed = true
          await handle.close()
        },
      }
    }),
  ],
  'closing one handle closes the others': [
    'close: other handles of the namespace, and of others, live on',
    withHandles((handle, shared, namespace) => {
      const all = (shared.get(namespace) ?? []) as StorageHandle[]
      shared.set(namespace, [...all, handle])
      return {
        close: async () => {
          for (const other of (shared.get(namespace) ?? []) as StorageHandle[]) await other.close()
          shared.delete(namespace)
        },
      }
    }),
  ],
  'a shared storage without createShared': [
    'enqueue: a delayed one is claimable `delayMs` later, not before',
    withTraits({ shared: true }),
  ],
}

export const brokenStorages: readonly Mutant[] = Object.entries(storages).map(([name, [catches, make]]) => ({
  name,
  catches,
  make,
}))
