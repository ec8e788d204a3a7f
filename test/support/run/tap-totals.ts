/**
 * Reads the TAP streams of test files, one after the other: what failed, with its diagnostics, what was skipped, and the totals
 * of single assertions.
 *
 * @module
 */

/** How a test file's process ended. */
export interface FileEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly ms: number
  /** Set when it was ended because it took longer, s. */
  readonly timedOutAfter?: number
}

/** What a run has come to so far. */
export interface Totals {
  passed: number
  failed: number
  skipped: number
  /** Names and reasons of what was skipped, or left to be done. */
  readonly skips: string[]
  /** The test files that failed. */
  readonly failedFiles: string[]
}

// The form of TAP 14 that tap writes: see https://testanything.org/tap-version-14-specification.html
const point = /^( *)(not )?ok \d+(?: - (.*?))?(?: # time=[\d.]+m?s)?( \{)?$/
const directive = / # (SKIP|TODO)\b ?(.*)$/i
const summary = /^# \{ total: \d+[^}]*\}$/

/** Gets files' streams; answers through `print` what a reader wants to see of them. */
export class TapTotals {
  readonly totals: Totals = { passed: 0, failed: 0, skipped: 0, skips: [], failedFiles: [] }
  readonly #print: (line: string) => void

  constructor(print: (line: string) => void) {
    this.#print = print
  }

  /** Takes all that a file has written, and how it ended. */
  file(name: string, stream: string, end: FileEnd): void {
    const { totals } = this
    const failures: string[] = []
    const sum: Record<string, number> = {}
    let complete = false
    /** Depth of the failed test point whose diagnostics follow; null outside of such. */
    let failing: number | null = null
    for (const text of stream.split('\n')) {
      if (failing !== null) {
        const pad = ' '.repeat(failing + 2)
        if (text === '' || (text.startsWith(pad) && !point.test(text))) {
          failures.push(`    ${text}`.trimEnd())
          if (text === `${pad}...`) failing = null
          continue
        }
        failing = null
      }
      if (text.startsWith('Bail out!')) failures.push(text)
      if (summary.test(text)) {
        for (const [, of, count] of text.matchAll(/(\w+): (\d+)/g)) sum[of!] = Number(count)
        complete = true
      }
      const skip = directive.exec(text)
      const found = point.exec(skip === null ? text : text.slice(0, skip.index))
      if (found === null) continue
      const [, indent = '', not, what = ''] = found
      if (skip !== null) {
        totals.skips.push(`${what}${skip[2] ? `: ${skip[2]}` : ''}`)
      } else if (not !== undefined) {
        failing = indent.length
        failures.push(`    ${text.replace(/ \{$/, '')}`)
      }
    }
    totals.passed += sum['pass'] ?? 0
    totals.skipped += (sum['skip'] ?? 0) + (sum['todo'] ?? 0)
    const { code, signal, ms, timedOutAfter } = end
    const failed = code !== 0 || timedOutAfter !== undefined || failures.length > 0 || !complete
    this.#print(`${failed ? 'not ok' : 'ok'} ${name} (${Math.round(ms)} ms)`)
    for (const line of failures) this.#print(line)
    if (!failed) return
    totals.failedFiles.push(name)
    // A file that ended badly without a failed assertion counts as one.
    totals.failed += Math.max(sum['fail'] ?? 0, 1)
    if (timedOutAfter !== undefined) this.#print(`    # was ended after ${timedOutAfter} s`)
    else if (signal !== null) this.#print(`    # died by ${signal}`)
    else if (failures.length === 0) this.#print(`    # exit code ${code}${complete ? '' : ', before its end'}`)
  }
}
