/**
 * What a fleet's storage stands on, and what can befall it: a folder on a disk that can be full, a Redis server behind a proxy that
 * breaks connections.
 *
 * @module
 */

import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../../src/clock.ts'
import type { StorageHandle } from '../../../src/storage.ts'
import { FaultyProxy } from '../../redis/proxy.ts'
import { RedisServer } from '../redis-server.ts'
import type { Seeded } from '../seeded.ts'
import { atExit, TemporaryFolder } from '../tidy.ts'
import { type Stage, storageOf } from './stage.ts'

/** What can befall a storage. */
export type Trouble = 'hang' | 'kill' | 'partition' | 'half-open' | 'cut' | 'flush' | 'full'

/** A place for a fleet. */
export interface Site {
  /** The storage as the fleet sees it. */
  readonly stage: Stage
  /** What {@link befall} can do here. */
  readonly troubles: readonly Trouble[]
  /** What it can't do here, and why. */
  readonly untried: readonly string[]
  /** Opens a queue's records past all faults. */
  open(queue: string): Promise<StorageHandle>
  /** Does one thing to the storage, and takes it away again. */
  befall(trouble: Trouble, random: Seeded): Promise<void>
  /** Logs that were sealed and compacted, over all queues that are there; 0 if it has none. */
  compactions(): number
  /** What is left of a queue whose records have all been forgotten. */
  leftovers(queue: string): Promise<string[]>
  /** Forgets a queue, whatever is left of it. */
  clear(queue: string): Promise<void>
  end(): Promise<void>
}

/** Room on the disk that is filled up, bytes. A round's records need a fraction of it. */
const diskBytes = 256 * 1024 * 1024

/** How long a server may take to end itself or to answer again, ms. */
const reviveMsMax = 20_000

/** A disk of its own for what is to be filled up; null where that can't be had. */
class SmallDisk {
  readonly folder: string
  readonly #temporary: TemporaryFolder
  readonly #forget: () => void

  private constructor(temporary: TemporaryFolder) {
    this.#temporary = temporary
    this.folder = temporary.path
    this.#forget = atExit(() => this.#remove())
  }

  static mount(): SmallDisk | string {
    if (process.platform !== 'linux') return 'needs Linux'
    if (process.getuid?.() !== 0) return 'needs root, to mount a tmpfs'
    const temporary = new TemporaryFolder('disk')
    const args = ['-t', 'tmpfs', '-o', `size=${diskBytes}`, 'tmpfs', temporary.path]
    if (spawnSync('mount', args).status === 0) return new SmallDisk(temporary)
    temporary.end()
    return 'cannot mount a tmpfs'
  }

  /** Takes all the room there is, for a while. */
  async fill(ms: number): Promise<void> {
    const ballast = join(this.folder, 'ballast')
    const fd = openSync(ballast, 'w')
    try {
      // What others free meanwhile is taken, too.
      for (const end = performance.now() + ms; performance.now() < end; await sleep(20)) takeAll(fd)
    } finally {
      closeSync(fd)
      rmSync(ballast)
    }
  }

  end(): void {
    this.#forget()
    this.#remove()
  }

  #remove(): void {
    spawnSync('umount', ['-l', this.folder])
    this.#temporary.end()
  }
}

function takeAll(fd: number): void {
  for (const bytes of [1024 * 1024, 4096, 1]) {
    const piece = Buffer.alloc(bytes)
    try {
      while (writeSync(fd, piece) === bytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
}

/** Where a site's files lie: `small`: on a disk that can be filled; `memory`: what a process has written survives its death there, too. */
export type Disk = 'small' | 'memory' | 'real'

/** Where a site's files are put. */
interface Place {
  readonly folder: string
  readonly small: SmallDisk | null
  /** Why it is no small disk though it should be. */
  readonly untried: readonly string[]
  readonly end: () => void
}

/** A folder of that kind; where there is none, a real one. */
function place(disk: Disk): Place {
  const small = disk === 'small' ? SmallDisk.mount() : null
  if (small instanceof SmallDisk) return { folder: small.folder, small, untried: [], end: () => small.end() }
  const base = disk === 'memory' && existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
  const untried = small === null ? [] : [`disk full: ${small}`]
  const temporary = new TemporaryFolder('site', base)
  return { folder: temporary.path, small: null, untried, end: () => temporary.end() }
}

/** A folder. */
export class FileSite implements Site {
  readonly stage: Extract<Stage, { kind: 'file' }>
  readonly troubles: readonly Trouble[]
  readonly untried: readonly string[]
  readonly #place: Place

  constructor(durability: 'fsync' | 'os', disk: Disk) {
    this.#place = place(disk)
    const { folder, small, untried } = this.#place
    this.stage = { kind: 'file', basePath: join(folder, 'base'), durability }
    this.troubles = small === null ? [] : ['full']
    this.untried = untried
  }

  open(queue: string): Promise<StorageHandle> {
    return storageOf(this.stage, systemClock).open(queue)
  }

  async befall(_trouble: Trouble, random: Seeded): Promise<void> {
    await this.#place.small?.fill(50 + random.below(1_500))
  }

  async leftovers(queue: string): Promise<string[]> {
    const handle = await this.open(queue)
    await handle.sweep(Number.MAX_SAFE_INTEGER)
    const { heldForMs: _, ...counts } = await handle.stats()
    await handle.close()
    return Object.entries(counts)
      .filter(([, count]) => count !== 0)
      .map(([state, count]) => `${count} ${state}`)
  }

  async clear(): Promise<void> {
    rmSync(this.stage.basePath, { recursive: true, force: true })
  }

  compactions(): number {
    const { basePath } = this.stage
    if (!existsSync(basePath)) return 0
    const epochs = readdirSync(basePath).map((folder) =>
      Math.max(1, ...readdirSync(join(basePath, folder)).map((name) => Number.parseInt(name, 10) || 1)),
    )
    return epochs.reduce((sum, epoch) => sum + epoch - 1, 0)
  }

  async end(): Promise<void> {
    this.#place.end()
  }
}

/** A Redis server with an append-only file, and a proxy before it. */
export class RedisSite implements Site {
  readonly stage: Stage
  readonly troubles: readonly Trouble[]
  readonly untried: readonly string[]
  readonly #server: RedisServer
  readonly #proxy: FaultyProxy
  readonly #place: Place

  private constructor(server: RedisServer, proxy: FaultyProxy, placed: Place) {
    this.#server = server
    this.#proxy = proxy
    this.#place = placed
    const { small, untried } = placed
    this.stage = { kind: 'redis', url: proxy.url }
    this.troubles = ['hang', 'kill', 'partition', 'half-open', 'cut', 'flush']
    if (small !== null) this.troubles = [...this.troubles, 'full']
    this.untried = untried
  }

  static async start(fsync: 'always' | 'everysec' | 'no', disk: Disk): Promise<RedisSite> {
    const placed = place(disk)
    const args = ['--dir', placed.folder]
    try {
      const server = await RedisServer.start({ appendonly: true, appendfsync: fsync, args })
      return new RedisSite(server, await FaultyProxy.start(server.port), placed)
    } catch (error) {
      placed.end()
      throw error
    }
  }

  open(queue: string): Promise<StorageHandle> {
    return storageOf({ kind: 'redis', url: this.#server.url }, systemClock).open(queue)
  }

  async befall(trouble: Trouble, random: Seeded): Promise<void> {
    const server = this.#server
    const proxy = this.#proxy
    switch (trouble) {
      case 'hang':
        server.pause()
        // Sometimes longer than a lease, and than a call may take.
        await sleep(random.below(2_000))
        server.resume()
        return
      case 'kill':
        await server.restart('kill')
        return
      case 'partition':
        proxy.mode = random.pick(['stall', 'mute'])
        await sleep(random.below(2_000))
        proxy.mode = 'pass'
        // What was lost on the way is lost: no such connection goes on.
        proxy.deaden()
        return
      case 'half-open':
        proxy.deaden()
        return
      case 'cut':
        proxy.cut()
        return
      case 'flush':
        await server.call('SCRIPT', 'FLUSH')
        return
      case 'full':
        await this.#place.small?.fill(50 + random.below(1_500))
        await this.#revive()
        return
    }
  }

  /** Starts the server again if it has ended itself, as it does with `appendfsync always` when it can't write. */
  async #revive(): Promise<void> {
    for (const end = performance.now() + reviveMsMax; performance.now() < end; await sleep(10)) {
      if (this.#server.pid === undefined) await this.#server.start()
      const pong = await this.#server.call('PING').catch(() => null)
      if (pong === 'PONG') return
    }
    throw new Error(`Redis does not answer ${reviveMsMax} ms after its disk was full`)
  }

  compactions(): number {
    return 0
  }

  /** Keys that name the queue; the lists of idle workers end by themselves, within a minute and before that if nobody is there. */
  async leftovers(queue: string): Promise<string[]> {
    const keys = (await this.#server.call('KEYS', `*{${queue}}*`)) as string[]
    return keys.filter((key) => !key.endsWith('}:i'))
  }

  async clear(): Promise<void> {
    await this.#server.call('FLUSHALL', 'SYNC')
  }

  async end(): Promise<void> {
    await this.#proxy.stop()
    await this.#server.dispose()
    this.#place.end()
  }
}
