/**
 * Conformance cases in a thread of their own: tap follows every promise of the thread it runs in, which takes half as long again.
 *
 * @module
 */

import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { Test } from 'tap'
import { conformance } from '../../../storages/conformance/index.ts'
import { typescript } from '../../support/typescript.ts'
import { variants } from './variants.ts'

interface Terms {
  readonly variant: keyof typeof variants
  readonly seed: number
}

/** What the thread tells: the cases' names, then how each asked for went, then how many answers were lost. */
type Told =
  | { readonly names: readonly string[] }
  | { readonly failed: null | { readonly message: string; readonly stack: string | undefined } }
  | { readonly lost: number }

/** Every case as a subtest, but those that are left to long runs; answers how many answers were lost in them. */
export async function conformanceInThread(t: Test, terms: Terms, unlessLong: RegExp | null = null): Promise<number> {
  const skipped = process.env['ASKONCE_LONG'] === undefined ? unlessLong : null
  const thread = new Worker(new URL(import.meta.url), { workerData: terms, execArgv: typescript })
  const ended = once(thread, 'exit')
  // Rejects, too, with what the thread died of: no case must wait for one that is gone.
  const died = ended.then(() => {
    throw new Error('the thread has ended')
  })
  died.catch(() => {})
  const heard = async (): Promise<Told> => (await Promise.race([once(thread, 'message'), died]))[0] as Told
  const { names } = (await heard()) as Extract<Told, { names: unknown }>
  for (const [index, name] of names.entries()) {
    await t.test(name, { skip: skipped?.test(name) === true && 'runs with ASKONCE_LONG=1' }, async (t) => {
      thread.postMessage(index)
      const { failed } = (await heard()) as Extract<Told, { failed: unknown }>
      if (failed !== null) throw Object.assign(new Error(failed.message), { stack: failed.stack })
      t.pass('holds')
    })
  }
  thread.postMessage('end')
  const { lost } = (await heard()) as Extract<Told, { lost: unknown }>
  await ended
  return lost
}

async function serve({ variant, seed }: Terms): Promise<void> {
  const port = parentPort!
  const tell = (told: Told) => port.postMessage(told)
  const { suite, server } = await variants[variant](seed)
  const cases: (() => Promise<void>)[] = []
  const names: string[] = []
  conformance({
    ...suite,
    test: (name, run) => {
      names.push(name)
      cases.push(run)
    },
  })
  port.on('message', async (asked: number | 'end') => {
    if (asked === 'end') {
      await server.stop()
      tell({ lost: server.wire.lost })
      port.close()
      return
    }
    try {
      await cases[asked]!()
      tell({ failed: null })
    } catch (error) {
      const { message, stack } = error as Error
      tell({ failed: { message, stack } })
    }
  })
  tell({ names })
}

if (!isMainThread) await serve(workerData as Terms)
