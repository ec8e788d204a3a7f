/**
 * The demo itself: several decoders on one storage work through one file, several times.
 *
 * @module
 */

import {
  createVinDecoder,
  DedupeReport,
  type NearDuplicate,
  type OutcomeClass,
  type VinCounters,
  type VinDecoder,
  type VinDecoderOptions,
  vinCells,
  vinColumns,
} from '../../../src/presets/vin/index.ts'
import { CsvWriter, countRows, readCsv } from './csv.ts'
import type { DemoOptions } from './options.ts'
import type { Progress } from './progress.ts'

/** One time through the file. */
export interface DemoPass {
  readonly pass: number
  readonly rows: number
  readonly valid: number
  readonly unique: number
  readonly upstream_calls: number
  readonly vins_sent: number
  readonly answered_from_cache: number
  readonly shared: number
  readonly calls_saved: number
  readonly seconds: number
  readonly classes: Readonly<Partial<Record<OutcomeClass, number>>>
}

/** What came of it. */
export interface DemoResult {
  readonly file: string
  readonly storage: string
  readonly source: string
  readonly workers: number
  readonly passes: readonly DemoPass[]
  readonly near_duplicates: readonly NearDuplicate[]
  readonly counters: VinCounters
  /** Whether it was broken off. */
  readonly interrupted: boolean
}

/** What the demo runs on. */
export interface DemoParts {
  readonly file: string
  readonly source: string
  readonly decoder: VinDecoderOptions
  readonly progress: Progress
  readonly signal: AbortSignal
}

/** Runs it. */
export async function runDemo(options: DemoOptions, parts: DemoParts): Promise<DemoResult> {
  const decoders = Array.from({ length: options.workers }, () => createVinDecoder(parts.decoder))
  const [first] = decoders as [VinDecoder, ...VinDecoder[]]
  for (const { queue } of decoders) queue.on('held', ({ retryAfterMs }) => parts.progress.hold(retryAfterMs))
  const passes: DemoPass[] = []
  let near: NearDuplicate[] = []
  try {
    for (const decoder of decoders) await decoder.start()
    const total = await countRows(parts.file)
    for (let pass = 1; pass <= options.passes && !parts.signal.aborted; pass++) {
      parts.progress.begin(`pass ${pass}`, total)
      const out = pass === 1 ? options.out : null
      const begun = performance.now()
      const before = sum(decoders)
      const report = await onePass(first, options, parts, out)
      parts.progress.end()
      const after = sum(decoders)
      const calls = after.vpic_calls - before.vpic_calls
      const summary = report.summary(calls)
      passes.push({
        pass,
        rows: summary.rows,
        valid: summary.valid,
        unique: summary.unique,
        upstream_calls: calls,
        vins_sent: after.decode_jobs_upstream - before.decode_jobs_upstream,
        answered_from_cache: summary.cached,
        shared: summary.shared,
        calls_saved: summary.callsSaved,
        seconds: Math.round(performance.now() - begun) / 1_000,
        classes: summary.classes,
      })
      if (pass === 1) near = report.nearDuplicates()
    }
    const storage = options.storage
    const { file, source } = parts
    const interrupted = parts.signal.aborted
    const { length: workers } = decoders
    return { file, storage, source, workers, passes, near_duplicates: near, counters: sum(decoders), interrupted }
  } finally {
    await Promise.all(decoders.map((decoder) => decoder.close()))
  }
}

async function onePass(
  decoder: VinDecoder,
  options: DemoOptions,
  parts: DemoParts,
  out: string | null,
): Promise<DedupeReport> {
  const { header, column, rows } = await readCsv(parts.file, options.column)
  const writer = out === null ? null : await CsvWriter.create(out)
  await writer?.write([...header, ...vinColumns])
  const report = new DedupeReport()
  // The rows that are under way, so that each can be written beside its outcome.
  const begun: (readonly string[])[] = []
  async function* vins(): AsyncGenerator<string> {
    for await (const row of rows) {
      begun.push(row)
      yield row[column] ?? ''
    }
  }
  let done = 0
  try {
    for await (const outcome of decoder.decodeMany(vins(), { signal: parts.signal })) {
      const row = begun.shift() ?? []
      // Short rows are filled up, so that the new columns stand under their names.
      await writer?.write([...row, ...Array(Math.max(0, header.length - row.length)).fill(''), ...vinCells(outcome)])
      report.add(outcome)
      parts.progress.step(++done)
    }
  } catch (error) {
    if (!parts.signal.aborted) throw error
  } finally {
    await writer?.close()
  }
  return report
}

/** The counters of all decoders together. */
function sum(decoders: readonly VinDecoder[]): VinCounters {
  const all = decoders.map(({ counters }) => counters)
  const total = (name: Exclude<keyof VinCounters, 'upstream_per_unique'>) =>
    all.reduce((sofar, counters) => sofar + counters[name], 0)
  const sent = total('decode_jobs_upstream')
  // A retry may go to another worker, so that their different VINs do not add up; the jobs created here do.
  const claimed = total('decode_jobs_claimed')
  return {
    decode_jobs_claimed: claimed,
    decode_jobs_deduped: total('decode_jobs_deduped'),
    decode_jobs_upstream: sent,
    decode_jobs_stale_ignored: total('decode_jobs_stale_ignored'),
    vpic_calls: total('vpic_calls'),
    request_bugs: total('request_bugs'),
    upstream_per_unique: claimed === 0 ? null : sent / claimed,
  }
}
