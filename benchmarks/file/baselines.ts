/**
 * What the File storage is measured against, on the same disk in the same run: (a) the least that a durable queue can do, a
 * line per step and one fdatasync for all lines of a turn; (b) the obvious way, a file per job written by
 * write-file-atomic at each step.
 *
 * @module
 */

import fs from 'node:fs'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import writeFileAtomic from 'write-file-atomic'

/** Runs whole jobs; each resolves when its three steps are stored. */
export interface Baseline {
  job(index: number): Promise<void>
  close(): Promise<void>
}

/** (a) A bare append and fdatasync group-commit loop: no state, no reading, no other process. */
export function appendLoop(folder: string, fsync: boolean, payload: string): Baseline {
  fs.mkdirSync(folder, { recursive: true })
  const fd = fs.openSync(path.join(folder, 'log'), 'a')
  let waiting: { line: string; resolve: () => void }[] = []
  let busy = false
  const flush = () => {
    const group = waiting
    waiting = []
    fs.writeSync(fd, group.map(({ line }) => line).join(''))
    const done = () => {
      for (const { resolve } of group) resolve()
      busy = waiting.length > 0
      if (busy) setImmediate(flush)
    }
    if (fsync) fs.fdatasync(fd, done)
    else done()
  }
  const append = (line: string) =>
    new Promise<void>((resolve) => {
      waiting.push({ line, resolve })
      if (busy) return
      busy = true
      setImmediate(flush)
    })
  return {
    async job(index) {
      const id = `job-${index}`
      await append(`${JSON.stringify({ step: 'enqueue', id, payload })}\n`)
      await append(`${JSON.stringify({ step: 'claim', id, generation: index })}\n`)
      await append(`${JSON.stringify({ step: 'settle', id, generation: index, result: payload })}\n`)
    },
    close: async () => fs.closeSync(fd),
  }
}

/** (b) Three write-file-atomic writes per job. */
export async function atomicWrites(folder: string, fsync: boolean, payload: string): Promise<Baseline> {
  await mkdir(folder, { recursive: true })
  return {
    async job(index) {
      const file = path.join(folder, `job-${index}.json`)
      const steps = [
        { state: 'queued', payload },
        { state: 'processing', payload, generation: index },
        { state: 'completed', generation: index, result: payload },
      ]
      for (const step of steps) await writeFileAtomic(file, JSON.stringify(step), { fsync })
    },
    close: async () => {},
  }
}
