/**
 * How far we are: a bar on a terminal, a line now and then elsewhere. On stderr, so that stdout is the answer alone.
 *
 * @module
 */

import cliProgress from 'cli-progress'

/** Shows progress. */
export interface Progress {
  begin(title: string, total: number): void
  step(done: number): void
  /** The queue is held by a throttle for so long; or not any more. */
  hold(ms: number): void
  end(): void
}

/** The right one for this process. */
export function progressFor(stream: NodeJS.WriteStream, quiet: boolean): Progress {
  if (quiet) return { begin() {}, step() {}, hold() {}, end() {} }
  return stream.isTTY ? new Bar(stream) : new Lines(stream)
}

class Bar implements Progress {
  readonly #bar: cliProgress.SingleBar

  constructor(stream: NodeJS.WriteStream) {
    const format = '{title} [{bar}] {value}/{total} rows {note}'
    this.#bar = new cliProgress.SingleBar({ format, stream, hideCursor: true, clearOnComplete: false })
  }

  begin(title: string, total: number): void {
    this.#bar.start(total, 0, { title, note: '' })
  }

  step(done: number): void {
    this.#bar.update(done, { note: '' })
  }

  hold(ms: number): void {
    this.#bar.update({ note: `(vPIC asks us to wait ${Math.ceil(ms / 1_000)} s)` })
  }

  end(): void {
    this.#bar.stop()
  }
}

class Lines implements Progress {
  readonly #stream: NodeJS.WriteStream
  #title = ''
  #total = 0
  #told = 0
  #holdTold = 0

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
  }

  begin(title: string, total: number): void {
    this.#title = title
    this.#total = total
    this.#told = 0
  }

  step(done: number): void {
    const quarter = Math.floor((done * 4) / Math.max(1, this.#total))
    if (quarter <= this.#told) return
    this.#told = quarter
    this.#stream.write(`${this.#title}: ${done} of ${this.#total} rows\n`)
  }

  hold(ms: number): void {
    // Fifty jobs of one throttled call tell the same.
    if (Date.now() - this.#holdTold < 500) return
    this.#holdTold = Date.now()
    this.#stream.write(`${this.#title}: vPIC asks us to wait ${Math.ceil(ms / 1_000)} s\n`)
  }

  end(): void {}
}
