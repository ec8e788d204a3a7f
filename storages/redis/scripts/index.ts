/**
 * The scripts, one an operation, and their digests.
 *
 * @module
 */

import { createHash } from 'node:crypto'
import { cancel } from './cancel.ts'
import { claim } from './claim.ts'
import { enqueue } from './enqueue.ts'
import { extend } from './extend.ts'
import { get } from './get.ts'
import { hold } from './hold.ts'
import { listen } from './listen.ts'
import { retire } from './retire.ts'
import { settle } from './settle.ts'
import { stats } from './stats.ts'
import { touch } from './touch.ts'

/** A script as Redis knows it. */
export interface Script {
  readonly name: string
  readonly lua: string
  /** What EVALSHA calls it by. */
  readonly sha: string
}

function script(name: string, lua: string): Script {
  return { name, lua, sha: createHash('sha1').update(lua).digest('hex') }
}

/** Every script. */
export const scripts = Object.freeze({
  enqueue: script('enqueue', enqueue),
  claim: script('claim', claim),
  extend: script('extend', extend),
  settle: script('settle', settle),
  cancel: script('cancel', cancel),
  touch: script('touch', touch),
  get: script('get', get),
  hold: script('hold', hold),
  stats: script('stats', stats),
  listen: script('listen', listen),
  retire: script('retire', retire),
})
