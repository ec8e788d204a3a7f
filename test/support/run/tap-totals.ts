/**
 * Reads a running TAP stream of `tap run`: one line a test file as it ends, the failures with their diagnostics, what was
 * skipped, and the totals of single assertions.
 *
 * @module
 */

/** What a run has come to so far. */
export interface Totals {
  passed: number
  failed: number
  skipped: number
  /** Names and reasons of what was skipped, or left to be done. */
  readonly skips: string[]
  /** The test files that failed. */
  readonly failedFiles: string[]
  /** Whether the stream came to its own end: its plan, and the runner's summary. */
  complete: boolean
}

// The form of TAP 14 that tap writes: see https://testanything.org/tap-version-14-specification.html
const point = /^( *)(not )?ok \d+(?: - (.*?))?(?: # time=([\d.]+)m?s)?( \{)?$/
const directive = / # (SKIP|TODO)\b ?(.*)$/i
const summary = /^# \{ total: \d+[^}]*\}$/

/** Gets the stream line by line; answers through `print` what a reader wants to see of it. */
export class TapTotals {
  readonly totals: Totals = { passed: 0, failed: 0, skipped: 0, skips: [], failedFiles: [], complete: false }
  readonly #print: (line: string) => void
  /** Depth of the failed test point whose diagnostics follow; null outside of such. */
  #failing: number | null = null
  /** Failures of the file that runs, and whether there was one within it. */
  #failures: string[] = []
  #inner = false
  /** Whether a file's own diagnostics are left out. */
  #mute = false
  /** Files that failed without a failure within. */
  #broken = 0

  constructor(print: (line: string) => void) {
    this.#print = print
  }

  /** Takes the next line. */
  line(text: string): void {
    if (this.#failing !== null && this.#diagnostic(text)) return
    if (text.startsWith('Bail out!')) {
      this.#print(text)
      return
    }
    if (summary.test(text)) {
      const sum = (name: string): number => Number(new RegExp(`${name}: (\\d+)`).exec(text)?.[1] ?? 0)
      this.totals.passed = sum('pass')
      // A file that ended badly without a failed assertion is not among tap's.
      this.totals.failed = sum('fail') + this.#broken
      this.totals.skipped = sum('skip') + sum('todo')
      this.totals.complete = true
      return
    }
    const skip = directive.exec(text)
    const found = point.exec(skip === null ? text : text.slice(0, skip.index))
    if (found === null) return
    const [, indent = '', not, name = '', time] = found
    if (skip !== null) {
      this.totals.skips.push(`${name}${skip[2] ? `: ${skip[2]}` : ''}`)
    } else if (not !== undefined) {
      this.#failing = indent.length
      if (indent !== '') {
        this.#failures.push(text.replace(/ \{$/, ''))
        this.#inner = true
      }
    }
    if (indent === '' && name !== '') this.#file(name, not !== undefined, time)
  }

  #file(name: string, failed: boolean, time: string | undefined): void {
    this.#print(`${failed ? 'not ok' : 'ok'} ${name}${time === undefined ? '' : ` (${Math.round(Number(time))} ms)`}`)
    for (const line of this.#failures) this.#print(line)
    if (failed) {
      this.totals.failedFiles.push(name)
      if (!this.#inner) this.#broken++
    }
    // A file's own diagnostics only repeat its failures, unless it had none.
    this.#mute = this.#inner
    this.#failures = []
    this.#inner = false
  }

  /** Whether the line is part of the diagnostics of a failed test point. */
  #diagnostic(text: string): boolean {
    const pad = ' '.repeat(this.#failing! + 2)
    const inside = text === '' || (text.startsWith(pad) && !point.test(text))
    if (!inside) {
      this.#failing = null
      return false
    }
    if (this.#failing! > 0) this.#failures.push(text)
    else if (!this.#mute) this.#print(text)
    if (text === `${pad}...`) this.#failing = null
    return true
  }
}
