/**
 * The least that wakes another process by a file: it appends a line, the other watches the file and reads on.
 *
 * @module
 */

import fs from 'node:fs'
import path from 'node:path'

function openLog(folder: string): number {
  fs.mkdirSync(folder, { recursive: true })
  return fs.openSync(path.join(folder, 'log'), 'a+')
}

/** Appends jobs. */
export function appendTo(folder: string, fsync: boolean): (id: string) => Promise<void> {
  const fd = openLog(folder)
  return (id) =>
    new Promise((resolve) => {
      fs.writeSync(fd, `${JSON.stringify({ step: 'enqueue', id })}\n`)
      if (fsync) fs.fdatasync(fd, () => resolve())
      else resolve()
    })
}

/** Claims each new job by a line of its own, then runs it. */
export function watchingWorker(folder: string, fsync: boolean, onRun: () => void): { close(): void } {
  const fd = openLog(folder)
  const buffer = Buffer.alloc(65_536)
  let position = fs.fstatSync(fd).size
  const look = () => {
    const bytes = fs.readSync(fd, buffer, 0, buffer.length, position)
    if (bytes === 0) return
    position += bytes
    for (const line of buffer.toString('utf8', 0, bytes).split('\n')) {
      if (!line.includes('"enqueue"')) continue
      const { id } = JSON.parse(line) as { id: string }
      fs.writeSync(fd, `${JSON.stringify({ step: 'claim', id })}\n`)
      if (fsync) fs.fdatasync(fd, onRun)
      else onRun()
    }
  }
  const watch = fs.watch(folder, look)
  return {
    close() {
      watch.close()
      fs.closeSync(fd)
    },
  }
}
