/**
 * What can go wrong with Redis, as errors of askonce: whether repeating helps, and nothing that must not be told. Errors of the
 * client carry commands with their arguments (payloads, AUTH) and are never passed on.
 *
 * @module
 */

import { StorageError } from '../../src/errors.ts'

/** What to do after a failed call. */
export interface Fault {
  /** `load`: send the script's text; `again`: repeat soon; `renew`: repeat on a new connection; `fail`: tell the caller. */
  readonly action: 'load' | 'again' | 'renew' | 'fail'
  readonly error: StorageError
}

/** Replies that pass: by their first word. */
const passing: Readonly<Record<string, string>> = {
  LOADING: 'Redis is loading its data',
  CLUSTERDOWN: 'the Redis Cluster is down',
  MASTERDOWN: 'the Redis replica has lost its master',
  TRYAGAIN: 'the Redis Cluster is moving the slot of this queue',
  MOVED: 'the Redis Cluster has moved the slot of this queue',
  ASK: 'the Redis Cluster is moving the slot of this queue',
  BUSY: 'Redis is busy with a script',
}

/** Replies that pass, but not soon. */
const lasting: Readonly<Record<string, string>> = {
  OOM: 'Redis has reached its maxmemory: nothing was written. Raise it, shorten the TTLs, or slow the producers down',
  MISCONF: 'Redis refuses writes because it can not save to disk (stop-writes-on-bgsave-error)',
  NOREPLICAS: 'Redis refuses writes because too few replicas are connected (min-replicas-to-write)',
}

/** Replies that repeating does not mend. */
const refusing: Readonly<Record<string, string>> = {
  NOAUTH: 'Redis wants a password',
  WRONGPASS: 'Redis does not accept the user name or password',
  NOPERM:
    'the Redis user may not do what askonce needs: EVALSHA, EVAL, SUBSCRIBE, PUBLISH, the commands in the scripts, and the keys and channels of the prefix',
  WRONGTYPE: 'a key of this queue holds something that is not from askonce: use another keyPrefix',
}

/** Reads a client's error. */
export function faultOf(error: unknown): Fault {
  const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) }
  const word = /^[A-Z]+(?=\s|$)/.exec(message)?.[0] ?? ''
  if (name === 'ReplyError' || name === 'SimpleError' || word !== '') {
    if (word === 'NOSCRIPT') return fault('load', 'Redis has lost its scripts', error)
    if (word === 'READONLY') return fault('renew', 'Redis is a replica now and refuses writes', error)
    if (message.includes('non local key')) return fault('again', passing['MOVED'] as string, error)
    if (message.includes('max number of clients')) return fault('again', 'Redis has too many clients', error)
    if (passing[word] !== undefined) return fault('again', passing[word], error)
    // Inside a script Redis before 7 wraps the reply in text of its own.
    for (const known of Object.keys(lasting)) {
      if (word === known || message.includes(`${known} `)) return fault('fail', lasting[known] as string, error)
    }
    if (refusing[word] !== undefined) return fault('fail', refusing[word], error, false)
    if (name === 'ReplyError' || name === 'SimpleError') {
      return fault('fail', 'Redis refused the call; see the cause', error, false)
    }
  }
  return fault('again', 'there is no connection to Redis', error)
}

/** A StorageError whose cause has the client error's name, code and message, and nothing else. */
export function storageError(text: string, error: unknown, retryable = true): StorageError {
  return new StorageError(text, { retryable, cause: bared(error) })
}

function fault(action: Fault['action'], text: string, error: unknown, retryable = true): Fault {
  return { action, error: storageError(text, error, retryable) }
}

function bared(error: unknown): Error {
  const { name, message, code } = error as { name?: unknown; message?: unknown; code?: unknown }
  const bare = new Error(scrubbed(typeof message === 'string' ? message : 'unknown'))
  if (typeof name === 'string' && name !== '') bare.name = name
  if (typeof code === 'string') Object.assign(bare, { code })
  return bare
}

/** A message without what may stand before the @ of a URL, and without what a script error quotes. */
export function scrubbed(message: string): string {
  const text = message.replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s]*@/gi, '$1').split('\n', 1)[0] as string
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}
