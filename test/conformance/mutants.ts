/** Ways to break a storage in one place. */

import type { Encoded, JobRecord } from '../../src/record.ts'
import type { StorageHandle, StorageTraits } from '../../src/storage.ts'
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
    mark: (items) => handle.mark(items),
    deliver: (items, request) => handle.deliver(items, request),
    get: (ids) => handle.get(ids),
    watch: (listener) => handle.watch(listener),
    sweep: (limit) => handle.sweep(limit),
    hold: (ms) => handle.hold(ms),
    stats: () => handle.stats(),
    close: () => handle.close(),
  }
}

/** A storage whose handles are partly replaced; `shared` is one object for all handles of the storage. */
export function withHandles(
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
export function withNames(rename: (namespace: string) => string): Mutant['make'] {
  class Broken extends ReferenceStorage {
    override open(namespace: string): Promise<StorageHandle> {
      return super.open(rename(namespace))
    }
  }
  return (options) => new Broken(options)
}

/** A storage that boasts. */
export function withTraits(traits: Partial<StorageTraits>): Mutant['make'] {
  class Broken extends ReferenceStorage {
    override readonly traits = { ...ReferenceStorage.prototype.traits, ...new ReferenceStorage().traits, ...traits }
  }
  return (options) => new Broken(options)
}

/** A storage that takes ids for others. */
export function withIds(rename: (id: string) => string): Mutant['make'] {
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
    mark: (items) => handle.mark(renamed(items)),
    deliver: (items, request) => handle.deliver(renamed(items), request),
    get: (ids) => handle.get(ids.map((id) => rename(id))),
  }))
}

/** A storage that keeps values otherwise than it got them. */
export function withValues(change: (value: Encoded) => Encoded): Mutant['make'] {
  return withHandles((handle) => ({
    enqueue: (items) => handle.enqueue(items.map((item) => ({ ...item, payload: change(item.payload) }))),
  }))
}

/** A storage that reads records otherwise than they are. */
export function withReading(change: (record: JobRecord) => JobRecord): Mutant['make'] {
  return withHandles((handle) => ({
    get: async (ids) => {
      const { now, records } = await handle.get(ids)
      return { now, records: records.map((record) => record && change(record)) }
    },
  }))
}

export function withHints(passes: (type: string) => boolean): Mutant['make'] {
  return withHandles((handle) => ({
    watch: (listener) => handle.watch((hint) => (passes(hint.type) ? listener(hint) : undefined)),
  }))
}

/** Breakages by name, each with the case that must notice. */
export type Breakages = Readonly<Record<string, readonly [catches: string, make: Mutant['make']]>>

export function mutantsOf(breakages: Breakages): readonly Mutant[] {
  return Object.entries(breakages).map(([name, [catches, make]]) => ({ name, catches, make }))
}
