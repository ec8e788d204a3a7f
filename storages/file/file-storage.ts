/**
 * The File storage: one folder, any number of processes of one machine.
 *
 * @module
 */

import { randomBytes } from 'node:crypto'
import path from 'node:path'
import type { Clock } from '../../src/clock.ts'
import { systemClock } from '../../src/clock.ts'
import { guardInteger, InvalidArgumentError } from '../../src/errors.ts'
import { limits } from '../../src/limits.ts'
import type { Storage, StorageHandle, StorageTraits } from '../../src/storage.ts'
import type { FileSystem } from './file-system.ts'
import { nodeFileSystem } from './file-system.ts'
import { Folder, folderName } from './folder.ts'
import { FileHandle } from './handle.ts'
import { Space } from './space.ts'

/** What can be set on a {@link FileStorage}. */
export interface FileStorageOptions {
  /**
   * The folder that everything is kept in; made, private to the user, if it is not there. On a local file system: network
   * file systems do not append in an order that all see.
   */
  basePath: string
  /**
   * What an acknowledged call survives. `fsync`: a power cut; it is on disk. `os`: the crash of any process, but not of the
   * machine. Default `fsync`.
   */
  durability?: 'fsync' | 'os'
  /** Default: the system's. */
  clock?: Clock
  /**
   * Bytes on disk, beside twice what the live records take, that are left lying about before the log is compacted, per
   * namespace. Default 4 MiB; 64 KiB and up.
   */
  compactionSlackBytes?: number
}

const traits: StorageTraits = Object.freeze({
  kind: 'file',
  durable: true,
  shared: true,
  push: true,
  ordering: 'fifo',
  clock: 'client',
  payloadBytesMax: limits.payloadBytesMax,
  ttlResolutionMs: 1,
  pollMs: Object.freeze({ min: 500, max: 5_000 }),
  gather: 'macrotask',
})

const compactionSlackBytesDefault = 4 * 1024 * 1024
const compactionSlackBytesMin = 64 * 1024

interface OpenSpace {
  readonly space: Space
  readonly opened: Promise<void>
  handles: number
}

/**
 * Keeps records in a folder that all processes of the machine share. Queues with the same folder and the same name, in
 * whatever processes, share their jobs.
 */
export class FileStorage implements Storage {
  readonly traits = traits
  /** The folder, as an absolute path. */
  readonly basePath: string
  readonly #clock: Clock
  readonly #fsync: boolean
  readonly #slackBytes: number
  readonly #fs: FileSystem
  readonly #spaces = new Map<string, OpenSpace>()
  readonly #prefix = randomBytes(6).toString('base64url')
  #count = 0

  /**
   * @param fs - the file system's calls: tests put faults there
   * @throws InvalidArgumentError
   */
  constructor(options: FileStorageOptions, fs: FileSystem = nodeFileSystem) {
    const { basePath, durability = 'fsync', clock = systemClock } = options
    const { compactionSlackBytes = compactionSlackBytesDefault } = options
    if (typeof basePath !== 'string' || basePath === '' || basePath.includes('\0')) {
      throw new InvalidArgumentError('options.basePath', 'the path of a folder', basePath)
    }
    if (durability !== 'fsync' && durability !== 'os') {
      throw new InvalidArgumentError('options.durability', "'fsync' or 'os'", durability)
    }
    const field = 'options.compactionSlackBytes'
    guardInteger(field, compactionSlackBytes, compactionSlackBytesMin, Number.MAX_SAFE_INTEGER)
    this.basePath = path.resolve(basePath)
    this.#clock = clock
    this.#fsync = durability === 'fsync'
    this.#slackBytes = compactionSlackBytes
    this.#fs = fs
  }

  async open(namespace: string): Promise<StorageHandle> {
    let open = this.#spaces.get(namespace)
    if (open === undefined) {
      const space = this.#space(namespace)
      open = { space, opened: space.open(), handles: 0 }
      this.#spaces.set(namespace, open)
    }
    const shared = open
    shared.handles++
    const release = async () => {
      if (--shared.handles > 0) return
      if (this.#spaces.get(namespace) === shared) this.#spaces.delete(namespace)
      await shared.space.close()
    }
    try {
      await shared.opened
      // It may have been open for long, and its folder be gone since.
      if (shared.handles > 1) await shared.space.open()
    } catch (error) {
      await release()
      throw error
    }
    return new FileHandle(shared.space, release)
  }

  #space(namespace: string): Space {
    const folder = new Folder(this.#fs, path.join(this.basePath, folderName(namespace)))
    const nonce = () => `${this.#prefix}${(this.#count++).toString(36)}`
    const { fsync, slackBytes } = { fsync: this.#fsync, slackBytes: this.#slackBytes }
    return new Space({ fs: this.#fs, folder, clock: this.#clock, fsync, slackBytes, nonce })
  }
}
