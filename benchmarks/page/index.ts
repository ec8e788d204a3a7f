/**
 * Writes the page of a run: Markdown, pictures, figures.
 *
 * @module
 */

import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { type Results, writeResults } from '../results/results.ts'
import { tryFile, tryFolder } from '../results/targets.ts'
import { charts } from './charts/index.ts'
import { pageOf } from './page.ts'
import { type Draw, drawer, howToInstall } from './vega.ts'

/** Writes the page of these results; answers the files. */
export type WritePage = (results: Results) => Promise<string[]>

/**
 * Makes ready to write into `out` and `out/benchmarks`: whatever will be missing, then, is missed now.
 *
 * @param root - the project's folder
 * @throws Error if there is nothing to draw by, for a page without its pictures is none, or if something can't be written
 */
export async function pageWriter(out: string, root: string = process.cwd()): Promise<WritePage> {
  const folder = path.join(out, 'benchmarks')
  const [page, data] = [path.join(out, 'benchmarks.md'), path.join(folder, 'results.json')]
  tryFolder(folder)
  tryFile(page)
  tryFile(data)
  const draw = await drawer(root)
  if (draw === null) throw new Error(`the page's pictures are drawn by vega, which is not installed: ${howToInstall}`)
  return async (results) => {
    const drawn = charts(results)
    const pictures = drawn.map(({ name }) => path.join(folder, `${name}.svg`))
    // All of them are drawn before any is written: files of two runs would not belong together.
    const texts = await inTurn(drawn, draw)
    for (const [index, file] of pictures.entries()) writeFileSync(file, texts[index] as string)
    writeResults(data, results)
    writeFileSync(page, pageOf(results, drawn))
    return [page, ...pictures, data]
  }
}

async function inTurn(drawn: ReturnType<typeof charts>, draw: Draw): Promise<string[]> {
  const texts: string[] = []
  for (const { spec } of drawn) texts.push(await draw(spec))
  return texts
}
