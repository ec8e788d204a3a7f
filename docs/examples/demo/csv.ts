/**
 * CSV in and out.
 *
 * @module
 */

import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { parse } from 'csv-parse'
import { UsageError } from './options.ts'

/** A file's rows, read as they are needed. */
export interface CsvRows {
  readonly header: readonly string[]
  /** Which column holds the VINs. */
  readonly column: number
  readonly rows: AsyncGenerator<readonly string[]>
}

/** Opens a CSV file with a header line. */
export async function readCsv(path: string, wanted: string | null): Promise<CsvRows> {
  const rows = records(path)
  const first = await rows.next()
  if (first.done === true) throw new UsageError(`${path} is empty; a header line is needed`)
  const header = first.value
  return { header, column: columnOf(header, wanted), rows }
}

/** Counts a file's rows, header left out: for the progress bar. */
export async function countRows(path: string): Promise<number> {
  let count = -1
  for await (const _row of records(path)) count++
  return Math.max(0, count)
}

async function* records(path: string): AsyncGenerator<readonly string[]> {
  const input = createReadStream(path)
  // Cells are not trimmed and rows may differ in length: the original is kept as it is.
  const parser = input.pipe(parse({ bom: true, relax_column_count: true, relax_quotes: true, skip_empty_lines: true }))
  input.on('error', (error) => parser.destroy(error))
  try {
    for await (const record of parser) yield record
  } catch (error) {
    throw new UsageError(`${path} can't be read: ${error instanceof Error ? error.message : error}`)
  } finally {
    input.destroy()
  }
}

function columnOf(header: readonly string[], wanted: string | null): number {
  const names = header.map((name) => name.trim().toLowerCase())
  if (wanted === null) return Math.max(0, names.indexOf('vin'))
  const index = names.indexOf(wanted.trim().toLowerCase())
  if (index === -1) throw new UsageError(`no column ${wanted}; there are ${header.join(', ')}`)
  return index
}

/** Writes rows as they come. */
export class CsvWriter {
  readonly #file: Awaited<ReturnType<typeof open>>
  #lines: string[] = []

  private constructor(file: Awaited<ReturnType<typeof open>>) {
    this.#file = file
  }

  static async create(path: string): Promise<CsvWriter> {
    try {
      return new CsvWriter(await open(path, 'w'))
    } catch (error) {
      throw new UsageError(`${path} can't be written: ${error instanceof Error ? error.message : error}`)
    }
  }

  async write(cells: readonly string[]): Promise<void> {
    this.#lines.push(`${cells.map(quoted).join(',')}\n`)
    if (this.#lines.length >= 1_000) await this.#flush()
  }

  async close(): Promise<void> {
    await this.#flush()
    await this.#file.close()
  }

  async #flush(): Promise<void> {
    await this.#file.appendFile(this.#lines.join(''))
    this.#lines = []
  }
}

function quoted(cell: string): string {
  return /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell
}
