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
  /** Set when it was ended by force: why. */
  readonly ended?: string
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
const plan = /^1\.\.\d+(?: |$)/
const summary = /^# \{ total: (\d+)((?:, \w+: \d+)*) \}$/

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
    // Tests may write what looks like TAP, too. It makes none of them pass: tap sets the exit code by what it knows itself. And
    // it counts for nothing, but for a second plan, or a second summary after the plan: who is to tell which is tap's?
    let plans = 0
    const sums: Record<string, number>[] = []
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
      if (plan.test(text)) plans++
      if (plans > 0) sums.push(...sumIn(text))
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
    const [sum] = sums
    const complete = sum !== undefined && sums.length === 1 && plans === 1
    if (complete) {
      totals.passed += sum['pass'] ?? 0
      totals.skipped += (sum['skip'] ?? 0) + (sum['todo'] ?? 0)
    }
    const { code, signal, ms, ended } = end
    const failed = code !== 0 || ended !== undefined || failures.length > 0 || !complete || (sum['fail'] ?? 0) > 0
    this.#print(`${failed ? 'not ok' : 'ok'} ${name} (${Math.round(ms)} ms)`)
    for (const line of failures) this.#print(line)
    if (!failed) return
    totals.failedFiles.push(name)
    // A file that ended badly without a failed assertion counts as one.
    totals.failed += Math.max((complete && sum['fail']) || 0, 1)
    if (ended !== undefined) this.#print(`    # was ended: ${ended}`)
    else if (signal !== null) this.#print(`    # died by ${signal}`)
    else if (plans > 1 || sums.length > 1) this.#print('    # wrote more than one plan, or more than one summary')
    else if (failures.length === 0) this.#print(`    # exit code ${code}${complete ? '' : ', before its end'}`)
  }
}

/** The counts that a line of tap's tells, if it is such and they add up. */
function sumIn(text: string): Record<string, number>[] {
  const found = summary.exec(text)
  if (found === null) return []
  const sum: Record<string, number> = {}
  for (const [, of, count] of found[2]!.matchAll(/(\w+): (\d+)/g)) sum[of!] = Number(count)
  const { pass = 0, fail = 0, skip = 0, todo = 0 } = sum
  return pass + fail + skip + todo === Number(found[1]) ? [sum] : []
}
