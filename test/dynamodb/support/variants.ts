/**
 * What the conformance suite is run on, by name.
 *
 * @module
 */

import type { ConformanceOptions } from '../../../storages/conformance/index.ts'
import { Seeded } from '../../support/seeded.ts'
import { atOnce, LocalDynamoDB } from './server.ts'
import { suiteOptions } from './suite.ts'

/** The suite on one kind of service. */
interface Variant {
  readonly suite: Omit<ConformanceOptions, 'test'>
  readonly server: LocalDynamoDB
}

/** With ASKONCE_LONG the SDK and HTTP have a part in every case. They take most of the time, and the other files go through both. */
const long = process.env['ASKONCE_LONG'] !== undefined

/** Makes what a variant needs; with a seed, the same again. */
export const variants = {
  async plain(): Promise<Variant> {
    const server = await LocalDynamoDB.start()
    const client = () => (long ? server.client() : server.directClient)
    return { server, suite: await suiteOptions({ tableName: 'plain', client }) }
  },
  async lost(seed: number): Promise<Variant> {
    const server = await LocalDynamoDB.start()
    server.wire.oldItems = true
    const options = { compress: { fromBytes: 4 } }
    const retryStrategy = atOnce(10)
    const client = () => server.client(long ? { retryStrategy } : { ...server.directConfig, retryStrategy })
    const suite = await suiteOptions({ tableName: 'lost', client, options })
    // A removal whose answer was lost can't be told from another's: that is said, and tested elsewhere.
    server.wire.lose = { operations: ['PutItem', 'UpdateItem'], chance: 0.2, random: new Seeded(seed).next }
    return { server, suite }
  },
} satisfies Record<string, (seed: number) => Promise<Variant>>
