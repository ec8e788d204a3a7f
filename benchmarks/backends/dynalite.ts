/**
 * dynalite in a process of its own, so that its work is not counted as the queue's.
 *
 * @module
 */

import { LocalDynamoDB } from '../../test/dynamodb/support/server.ts'
import { isChild, serve, spawned } from '../run/child.ts'

export interface Dynalite {
  readonly endpoint: string
  cpuUs(): Promise<number>
  stop(): Promise<void>
}

export async function startDynalite(): Promise<Dynalite> {
  const child = spawned(import.meta.url)
  return {
    endpoint: (await child.ask('start')) as string,
    cpuUs: () => child.ask('cpu') as Promise<number>,
    stop: () => child.end(),
  }
}

if (isChild(import.meta.url)) {
  serve(async (question) => {
    if (question === 'start') {
      const server = await LocalDynamoDB.start()
      // As AWS has it: what was there is sent with the refusal.
      server.wire.oldItems = true
      return server.endpoint
    }
    const { user, system } = process.cpuUsage()
    return user + system
  })
}
