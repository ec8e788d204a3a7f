/**
 * Vega-Lite specs to SVG, by the packages of `benchmarks/package.json`.
 *
 * @module
 */

import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { inkDark, inks } from './look.ts'

// Of the packages, which are not installed with ours, what is used.
interface Vega {
  parse(spec: object): object
  View: new (runtime: object, options: { renderer: 'none' }) => { toSVG(): Promise<string>; finalize(): void }
}
interface VegaLite {
  compile(spec: object): { spec: object }
}

/** Draws a spec. */
export type Draw = (spec: object) => Promise<string>

export const howToInstall = 'npm ci --prefix benchmarks'

/**
 * Null where the packages are not installed.
 *
 * @param root - the project's folder: this module may run as it was compiled, far from the packages
 */
export async function drawer(root: string = process.cwd()): Promise<Draw | null> {
  const { resolve } = createRequire(path.join(root, 'benchmarks', 'package.json'))
  let files: [string, string]
  try {
    files = [resolve('vega'), resolve('vega-lite')]
  } catch {
    return null
  }
  const vega = (await import(pathToFileURL(files[0]).href)) as Vega
  const vegaLite = (await import(pathToFileURL(files[1]).href)) as VegaLite
  return async (spec) => {
    const view = new vega.View(vega.parse(vegaLite.compile(spec).spec), { renderer: 'none' })
    try {
      return themed(await view.toSVG())
    } finally {
      view.finalize()
    }
  }
}

/** Lets the inks follow the reader's light or dark setting; without one they are legible on both. */
function themed(svg: string): string {
  const rules = Object.entries(inkDark).map(([name, dark]) => {
    const light = inks[name as keyof typeof inks]
    return `[fill="${light}"]{fill:${dark}}[stroke="${light}"]{stroke:${dark}}`
  })
  const style = `<style>@media (prefers-color-scheme: dark){${rules.join('')}}</style>`
  return `${svg.replace(/^<svg[^>]*>/, (tag) => `${tag}${style}`)}\n`
}
