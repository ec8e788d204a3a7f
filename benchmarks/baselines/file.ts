/**
 * The least that a durable queue on a file does: a Map and an array, and a line for each step; one write and one fdatasync for
 * all lines that gathered meanwhile. No other process, no checksums, no compaction, no reading back.
 *
 * @module
 */

import fs from 'node:fs'
import path from 'node:path'
import type { Session } from '../backends/backend.ts'
import { mapAndArray } from './memory.ts'

/** Counts the calls on the file system, in `count`. */
export function appendLoop(folder: string, fsync: boolean, count: () => void): Session {
  fs.mkdirSync(folder, { recursive: true })
  const fd = fs.openSync(path.join(folder, 'log'), 'a')
  let gathered: { line: string; resolve: () => void }[] = []
  let busy = false
  const flush = () => {
    const group = gathered
    gathered = []
    count()
    fs.writeSync(fd, group.map(({ line }) => line).join(''))
    const done = () => {
      for (const { resolve } of group) resolve()
      busy = gathered.length > 0
      if (busy) setImmediate(flush)
    }
    if (!fsync) return done()
    count()
    fs.fdatasync(fd, done)
  }
  const append = (line: string) =>
    new Promise<void>((resolve) => {
      gathered.push({ line, resolve })
      if (busy) return
      busy = true
      setImmediate(flush)
    })
  return mapAndArray(
    // The payload is in the log already when the job is claimed.
    (step, id, entry) => append(`${JSON.stringify(step === 'claim' ? { step, id } : { step, id, ...entry })}\n`),
    async () => fs.closeSync(fd),
  )
}
