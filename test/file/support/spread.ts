/**
 * A Storage whose operations are spread over several processes: each has the folder open, and each call goes to the next.
 */

import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import * as errors from '../../../src/errors.ts'
import type { HintListener, Storage, StorageHandle, StorageTraits } from '../../../src/storage.ts'
import type { FileStorageOptions } from '../../../storages/file/index.ts'
import { FileStorage } from '../../../storages/file/index.ts'
import { typescript } from '../../support/typescript.ts'

/** What a child is asked for. */
interface Request {
  readonly call: number
  /** Of which handle; -1 to open one. */
  readonly handle: number
  readonly method: string
  readonly given: readonly unknown[]
}

/** What a child tells. */
type Message =
  | { readonly call: number; readonly answer: unknown }
  | { readonly call: number; readonly error: { readonly name: string; readonly message: string } }
  | { readonly handle: number; readonly hint: Parameters<HintListener>[0] }

class Worker {
  readonly #process: ChildProcess
  readonly #waiting = new Map<number, { resolve: (answer: unknown) => void; reject: (error: unknown) => void }>()
  readonly listeners = new Map<number, (hint: Parameters<HintListener>[0]) => void>()
  #calls = 0

  constructor() {
    const file = fileURLToPath(import.meta.url)
    this.#process = fork(file, [], { execArgv: typescript, serialization: 'advanced' })
    this.#process.on('message', (message: Message) => {
      if ('hint' in message) {
        this.listeners.get(message.handle)?.(message.hint)
        return
      }
      const waiting = this.#waiting.get(message.call)
      this.#waiting.delete(message.call)
      if ('error' in message) waiting?.reject(revive(message.error))
      else waiting?.resolve(message.answer)
    })
    this.#process.on('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('a process of the test has ended'))
    })
  }

  ask(handle: number, method: string, ...given: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call = this.#calls++
      this.#waiting.set(call, { resolve, reject })
      this.#process.send({ call, handle, method, given } satisfies Request)
    })
  }

  async end(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#process.once('exit', () => resolve()))
    this.#process.disconnect()
    await ended
  }
}

function revive({ name, message }: { name: string; message: string }): Error {
  if (name === 'StorageClosedError') return new errors.StorageClosedError()
  if (name === 'StorageError') return new errors.StorageError(message)
  return Object.assign(new Error(message), { name })
}

/** The processes. Many storages, one after the other, can use them. */
export class Processes {
  readonly #workers: readonly Worker[]
  #next = 0

  private constructor(workers: readonly Worker[]) {
    this.#workers = workers
  }

  static start(count: number): Processes {
    return new Processes(Array.from({ length: count }, () => new Worker()))
  }

  /** A storage on a folder. */
  storage(options: FileStorageOptions): Storage {
    const workers = this.#workers
    const next = () => workers[this.#next++ % workers.length] as Worker
    const { traits } = new FileStorage(options)
    return new SpreadStorage(traits, options, workers, next)
  }

  async end(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.end()))
  }
}

const methods: readonly Exclude<keyof StorageHandle, 'watch' | 'close'>[] = [
  'enqueue',
  'claim',
  'extend',
  'settle',
  'cancel',
  'touch',
  'mark',
  'deliver',
  'get',
  'sweep',
  'hold',
  'stats',
]

let handles = 0

class SpreadStorage implements Storage {
  readonly traits: StorageTraits
  readonly #options: FileStorageOptions
  readonly #workers: readonly Worker[]
  readonly #next: () => Worker

  constructor(traits: StorageTraits, options: FileStorageOptions, workers: readonly Worker[], next: () => Worker) {
    this.traits = traits
    this.#options = options
    this.#workers = workers
    this.#next = next
  }

  get basePath(): string {
    return this.#options.basePath
  }

  async open(namespace: string): Promise<StorageHandle> {
    const id = handles++
    await Promise.all(this.#workers.map((worker) => worker.ask(id, 'open', this.#options, namespace)))
    const [first] = this.#workers as [Worker]
    const listeners = new Set<HintListener>()
    first.listeners.set(id, (hint) => {
      for (const listener of listeners) listener(hint)
    })
    let closed = false
    const forward =
      (method: string) =>
      (...given: unknown[]) => {
        // The one who was asked to close knows best; all were.
        return this.#next().ask(id, method, ...given)
      }
    const handle: Record<string, unknown> = {}
    for (const method of methods) handle[method] = forward(method)
    handle['watch'] = (listener: HintListener) => {
      if (closed) throw new errors.StorageClosedError()
      const own: HintListener = (hint) => listener(hint)
      listeners.add(own)
      return () => void listeners.delete(own)
    }
    handle['close'] = async () => {
      closed = true
      listeners.clear()
      await Promise.all(this.#workers.map((worker) => worker.ask(id, 'close')))
    }
    return handle as unknown as StorageHandle
  }
}

/** In the child. */
function serve(): void {
  const storages = new Map<string, FileStorage>()
  const open = new Map<number, StorageHandle>()
  const run = async ({ handle, method, given }: Request): Promise<unknown> => {
    if (method === 'open') {
      const [options, namespace] = given as [FileStorageOptions, string]
      const storage = storages.get(options.basePath) ?? new FileStorage(options)
      storages.set(options.basePath, storage)
      const opened = await storage.open(namespace)
      opened.watch((hint) => void process.send?.({ handle, hint }))
      open.set(handle, opened)
      return undefined
    }
    const opened = open.get(handle) as unknown as Record<string, (...given: readonly unknown[]) => unknown>
    return opened[method]?.(...given)
  }
  process.on('message', (request: Request) => {
    const { call } = request
    run(request).then(
      (answer) => process.send?.({ call, answer }),
      (error: Error) => process.send?.({ call, error: { name: error.name, message: error.message } }),
    )
  })
  process.on('disconnect', () => process.exit())
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.send !== undefined) serve()
