/**
 * What processes that may die at any time tell those who judge them: lines in a file of their own, each one `write(2)`, so that a
 * SIGKILL loses nothing that was said before. Times are microseconds of CLOCK_MONOTONIC, which all processes of a machine share.
 *
 * @module
 */

import { openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** An id's creation as the results tell of it. */
export interface Made {
  /** The token in the payload: of the enqueue that made the record. */
  readonly token: string
  /** The record's `createdAt`. */
  readonly createdAt: number
}

/** One line, `at` which time it was written. */
export type Note = { readonly at: number } & (
  | { readonly kind: 'up'; readonly role: string }
  | { readonly kind: 'down' }
  /** A call was made; `n` joins it with its answer. */
  | { readonly kind: 'call'; readonly n: number; readonly op: Operation; readonly id: string; readonly token: string }
  /** `status`: what it answered, or `error`. */
  | { readonly kind: 'answer'; readonly n: number; readonly status: string; readonly result?: Result }
  | { readonly kind: 'answer'; readonly n: number; readonly status: 'error'; readonly code: string }
  /** A lease was asked for or renewed at `asked`, and its owner believes in it until then. */
  | ({ readonly kind: 'leased'; readonly id: string; readonly generation: string } & Belief)
  /** Its owner gives a lease up. */
  | { readonly kind: 'unleased'; readonly id: string; readonly generation: string }
  /** A handler begins. */
  | ({ readonly kind: 'ran'; readonly id: string; readonly run: string } & Made & Attempt)
  /** Its verdict is stored, say the queue's events. */
  | { readonly kind: 'completed'; readonly id: string; readonly result: Result }
  | { readonly kind: 'failed'; readonly id: string; readonly attempts: number }
  | { readonly kind: 'warning'; readonly code: string; readonly message: string }
  | { readonly kind: 'problem'; readonly message: string }
)

/** A lease as its owner knows it: microseconds. */
export interface Belief {
  readonly asked: number
  readonly until: number
}

/** What producers do. */
export type Operation = 'enqueue' | 'wait' | 'run' | 'cancel' | 'status' | 'touch'

/** Which attempt a handler is. */
export interface Attempt {
  readonly attempts: number
  readonly maxAttempts: number
}

/** What handlers answer. */
export interface Result extends Made {
  /** Which run it was: the lease's generation and the attempt. */
  readonly run: string
}

/** Without the time, which the writer adds. */
export type NoteContent = Note extends infer Each ? (Each extends Note ? Omit<Each, 'at'> : never) : never

/** Now, in microseconds of the machine's monotonic clock. */
export function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}

/** Opens a file of notes; answers what writes a line. */
export function noteTo(path: string): (note: NoteContent) => void {
  const fd = openSync(path, 'a')
  return (note) => void writeSync(fd, `${JSON.stringify({ at: monotonicUs(), ...note })}\n`)
}

/** The notes of one process. */
export interface Diary {
  readonly name: string
  readonly notes: readonly Note[]
}

/** Reads every file of a folder. A last line without its end was never said. */
export function readDiaries(folder: string): Diary[] {
  return readdirSync(folder)
    .sort()
    .map((name) => {
      const lines = readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1)
      return { name, notes: lines.map((line) => JSON.parse(line) as Note) }
    })
}
