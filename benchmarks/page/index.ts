/**
 * Writes the page of a run: Markdown, pictures, figures.
 *
 * @module
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { type Results, writeResults } from '../results/results.ts'
import { charts } from './charts.ts'
import { pageOf } from './page.ts'
import { drawer, howToInstall } from './vega.ts'

/** Answers the files that were written, in `out` and `out/benchmarks`. */
export async function writePage(results: Results, out: string): Promise<string[]> {
  const folder = path.join(out, 'benchmarks')
  mkdirSync(folder, { recursive: true })
  const files: string[] = []
  const draw = await drawer()
  const drawn = draw === null ? [] : charts(results)
  if (draw === null) console.error(`No pictures: vega is not installed (${howToInstall})`)
  for (const { name, spec } of drawn) {
    const file = path.join(folder, `${name}.svg`)
    writeFileSync(file, (await draw?.(spec)) ?? '')
    files.push(file)
  }
  const data = path.join(folder, 'results.json')
  writeResults(data, results)
  const page = path.join(out, 'benchmarks.md')
  writeFileSync(page, pageOf(results, drawn))
  return [page, ...files, data]
}
