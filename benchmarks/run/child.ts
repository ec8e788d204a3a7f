/**
 * Questions to another process of this benchmark, and their answers.
 *
 * @module
 */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

interface Question {
  readonly number: number
  readonly question: unknown
}

interface Answer {
  readonly number: number
  readonly answer?: unknown
  readonly error?: string
}

/** Told apart from a main module by the argument that {@link spawned} gives. */
const mark = 'askonce-bench-child'

/** Whether this process was made to be the module's. */
export function isChild(moduleUrl: string): boolean {
  return process.send !== undefined && process.argv[2] === mark && process.argv[1] === fileURLToPath(moduleUrl)
}

/** Another process. */
export class Child {
  readonly #process: ChildProcess
  readonly #waiting = new Map<number, { resolve: (answer: unknown) => void; reject: (error: Error) => void }>()
  #count = 0

  constructor(child: ChildProcess) {
    this.#process = child
    child.on('message', (message) => {
      const { number, answer, error } = message as Answer
      const waiting = this.#waiting.get(number)
      this.#waiting.delete(number)
      if (error === undefined) waiting?.resolve(answer)
      else waiting?.reject(new Error(error))
    })
    child.on('exit', (code, signal) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`the process ended (${signal ?? code})`))
      this.#waiting.clear()
    })
  }

  /** Asks; rejects with the other side's error, when it ends, or when the time is up: then it is ended. */
  async ask(question: unknown, timeoutMs = 120_000): Promise<unknown> {
    const number = this.#count++
    const answered = new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject })
      if (!this.#process.connected) reject(new Error('the process has ended'))
      else this.#process.send({ number, question } satisfies Question)
    })
    const timer = setTimeout(() => {
      this.#waiting.get(number)?.reject(new Error(`no answer in ${timeoutMs / 1_000} s`))
      this.#process.kill('SIGKILL')
    }, timeoutMs)
    try {
      return await answered
    } finally {
      clearTimeout(timer)
    }
  }

  /** Lets it end by itself, and by force if it takes too long. */
  async end(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const ended = once(this.#process, 'exit')
    const force = setTimeout(() => this.#process.kill('SIGKILL'), 5_000)
    if (this.#process.connected) this.#process.disconnect()
    await ended
    clearTimeout(force)
  }
}

/** Runs a module in a process of its own; the module must `serve` there. */
export function spawned(moduleUrl: string): Child {
  const file = fileURLToPath(moduleUrl)
  const loader = file.endsWith('.ts') ? ['--import', 'tsx'] : []
  // What the SDK will want of Node some day is no news to who reads figures.
  const env = { ...process.env, AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' }
  return new Child(fork(file, [mark], { execArgv: ['--expose-gc', ...loader], env }))
}

/** Answers questions until the asker is gone; then `closed`, and the end. */
export function serve(answer: (question: unknown) => unknown, closed: () => Promise<void> = async () => {}): void {
  process.on('message', (message) => {
    const { number, question } = message as Question
    void (async () => {
      let said: Answer
      try {
        said = { number, answer: await answer(question) }
      } catch (error) {
        said = { number, error: (error as Error).message }
      }
      if (process.connected) process.send?.(said)
    })()
  })
  // Control-C reaches every process of the terminal: the asker ends by it, and this one, tidied up, by that.
  process.on('SIGINT', () => {})
  process.on('disconnect', () => {
    closed().finally(() => process.exit())
  })
}
