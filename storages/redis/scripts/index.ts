/**
 * The scripts, one an operation. Every one is called with two keys: `{tag}`, which never exists, and `{tag}:d`. The first is
 * what makes a script wait (ASK, TRYAGAIN) while a Cluster moves its slot, instead of working on one half of the records: see
 * the ADR 0201. Flags are: b PUBLISH can't tell who listens (Cluster), e the caller's channel asks for an echo.
 *
 * @module
 */

import { cancel } from './cancel.ts'
import { claim } from './claim.ts'
import { deliver } from './deliver.ts'
import { enqueue } from './enqueue.ts'
import { extend } from './extend.ts'
import { get } from './get.ts'
import { hold } from './hold.ts'
import { listen } from './listen.ts'
import { mark } from './mark.ts'
import { retire } from './retire.ts'
import { settle } from './settle.ts'
import { stats } from './stats.ts'
import { touch } from './touch.ts'

export type { Script } from './part.ts'

/** Every script. */
export const scripts = Object.freeze({
  enqueue,
  claim,
  extend,
  settle,
  cancel,
  touch,
  mark,
  deliver,
  get,
  hold,
  stats,
  listen,
  retire,
})
