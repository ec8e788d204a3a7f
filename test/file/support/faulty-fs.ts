/**
 * A file system that fails, crashes or loses power on request: the real one, with every call passing a gate first.
 */

import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import type { FileSystem } from '../../../storages/file/file-system.ts'
import { nodeFileSystem } from '../../../storages/file/file-system.ts'

/** The names of the calls that can be counted and failed. */
export type FileSystemCall = keyof FileSystem

/** An error as the operating system gives it. */
export function systemError(code: string, call: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${call}`), { code, syscall: call })
}

/** Asked before each call: may throw instead of it. `bytes`: what it is about to write. */
export type Gate = (call: FileSystemCall, target: string | number, bytes?: Buffer) => void

/** The real file system behind a gate. */
export function gated(gate: Gate, base: FileSystem = nodeFileSystem): FileSystem {
  const wrapped = {} as Record<string, (...given: never[]) => unknown>
  for (const call of Object.keys(base) as FileSystemCall[]) {
    const original = base[call] as (...given: unknown[]) => unknown
    wrapped[call] = (...given: unknown[]) => {
      gate(call, given[0] as string | number, given[1] instanceof Uint8Array ? (given[1] as Buffer) : undefined)
      return original(...given)
    }
  }
  return wrapped as unknown as FileSystem
}

/** The real file system, whose atomic writes are done when the call returns: how fast the disk is plays no part. */
export const promptFileSystem: FileSystem = {
  ...nodeFileSystem,
  writeAtomically: async (file, bytes) => writeFileAtomic.sync(file, bytes, { mode: 0o600 }),
}

/** The process that used the file system is dead: nothing it does reaches the disk any more. */
class Crash extends Error {}

/** Where a crash happens: before the n-th call that changes something, which may still do a part of its work. */
export interface CrashPoint {
  /** Counted from 1. */
  readonly call: number
  /** Of what an append or an atomic write would write, the part that arrives: 0 to 1. */
  readonly part: number
}

const changing: ReadonlySet<FileSystemCall> = new Set([
  'makeFolder',
  'openLog',
  'append',
  'syncData',
  'syncDataNow',
  'syncFolder',
  'remove',
  'writeAtomically',
])

/** A file system whose process dies at one point, and the number of changing calls it saw. */
export function crashing(
  point: CrashPoint | null,
  base: FileSystem = nodeFileSystem,
): { fs: FileSystem; calls: () => number; crashed: () => boolean } {
  let calls = 0
  let dead = false
  const gate: Gate = (call, target, bytes) => {
    if (dead) throw new Crash()
    if (!changing.has(call)) return
    calls++
    if (point === null || calls !== point.call) return
    dead = true
    if (bytes !== undefined) {
      const some = bytes.subarray(0, Math.floor(bytes.length * point.part))
      if (call === 'append') base.append(target as number, some)
      // What write-file-atomic leaves behind when it is killed between opening and renaming.
      if (call === 'writeAtomically') writeFileSync(`${target}.1234567890`, some, { mode: 0o600 })
    }
    throw new Crash()
  }
  const fs = gated(gate, base)
  // Descriptors of a dead process are closed by the system, and so must be in the test.
  fs.close = (fd) => nodeFileSystem.close(fd)
  return { fs, calls: () => calls, crashed: () => dead }
}

/** The names in a folder. */
export function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).sort() : []
}

/** The one namespace's folder below a basePath. */
export function onlyFolder(basePath: string): string {
  const [name, ...more] = namesIn(basePath)
  if (name === undefined || more.length > 0) throw new Error(`one folder expected in ${basePath}`)
  return path.join(basePath, name)
}

/** All bytes in a folder. */
export function bytesIn(folder: string): number {
  return namesIn(folder).reduce((sum, name) => {
    // Others remove files meanwhile.
    return sum + (statSync(path.join(folder, name), { throwIfNoEntry: false })?.size ?? 0)
  }, 0)
}

/**
 * A disk that loses, at a power cut, all that was not synced: bytes beyond the last fdatasync, names and removals that came
 * after the last sync of their folder.
 */
export class VolatileDisk {
  readonly fs: FileSystem
  readonly #keep: string
  /** Bytes on disk, by path. */
  readonly #synced = new Map<string, number>()
  readonly #paths = new Map<number, string>()
  /** Names that are not on disk yet. */
  readonly #unnamed = new Set<string>()
  /** Removed names whose removal is not on disk yet, and copies of the files. */
  readonly #removed = new Map<string, string>()
  #copies = 0

  /** @param keep - a folder for copies of removed files */
  constructor(keep: string) {
    this.#keep = keep
    const base = nodeFileSystem
    this.fs = {
      ...base,
      openLog: (file, create) => {
        const isNew = !existsSync(file)
        const fd = base.openLog(file, create)
        this.#paths.set(fd, file)
        if (isNew) this.#name(file, 0)
        return fd
      },
      syncData: async (fd) => {
        const size = base.statusOf(fd).size
        await base.syncData(fd)
        this.#sync(fd, size)
      },
      syncDataNow: (fd) => {
        base.syncDataNow(fd)
        this.#sync(fd, base.statusOf(fd).size)
      },
      syncFolder: (folder) => {
        base.syncFolder(folder)
        for (const file of this.#unnamed) if (path.dirname(file) === folder) this.#unnamed.delete(file)
        for (const file of this.#removed.keys()) if (path.dirname(file) === folder) this.#removed.delete(file)
      },
      remove: (file) => {
        if (existsSync(file) && !this.#unnamed.has(file)) {
          const copy = path.join(this.#keep, String(this.#copies++))
          copyFileSync(file, copy)
          this.#removed.set(file, copy)
        }
        base.remove(file)
      },
      writeAtomically: async (file, bytes) => {
        await base.writeAtomically(file, bytes)
        this.#name(file, bytes.length)
      },
    }
  }

  /** What a power cut leaves. Every Storage on this disk must have been abandoned. */
  cutPower(random: () => number): void {
    for (const [file, copy] of this.#removed) if (random() < 0.5 && !existsSync(file)) copyFileSync(copy, file)
    for (const file of this.#unnamed) if (random() < 0.5) rmSync(file, { force: true })
    for (const [file, synced] of this.#synced) {
      if (!existsSync(file)) continue
      const size = statSync(file).size
      if (size <= synced) continue
      // The kernel may have written some of the rest by itself; the last of it torn, or its blocks never filled.
      const kept = synced + Math.floor(random() * (size - synced + 1))
      truncateSync(file, kept)
      if (random() < 0.3) appendFileSync(file, Buffer.alloc(Math.floor(random() * 200)))
    }
    this.settle()
  }

  /** All that is there now is on disk. */
  settle(): void {
    this.#unnamed.clear()
    this.#removed.clear()
    this.#synced.clear()
    for (const file of this.#paths.values()) if (existsSync(file)) this.#synced.set(file, statSync(file).size)
  }

  #name(file: string, synced: number): void {
    this.#unnamed.add(file)
    this.#removed.delete(file)
    this.#synced.set(file, synced)
  }

  #sync(fd: number, size: number): void {
    const file = this.#paths.get(fd)
    if (file !== undefined) this.#synced.set(file, Math.max(this.#synced.get(file) ?? 0, size))
  }
}
