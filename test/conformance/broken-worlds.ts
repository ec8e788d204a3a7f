/** Storages that mix up values, ids, namespaces, listeners, ends of life, or handles. */

import type { Encoded, JobRecord } from '../../src/record.ts'
import { isTerminal } from '../../src/record.ts'
import type { HintListener, StorageHandle } from '../../src/storage.ts'
import type { Breakages } from './mutants.ts'
import {
  mutantsOf,
  withHandles,
  withHints,
  withIds,
  withNames,
  withReading,
  withTraits,
  withValues,
} from './mutants.ts'

function asText(value: Encoded): string {
  return typeof value === 'string' ? value : Buffer.from(value).toString()
}

const breakages: Breakages = {
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

export const brokenWorlds = mutantsOf(breakages)
