/**
 * Traits: what a storage says of itself is well-formed, and the same each time.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { limits } from '../../src/limits.ts'
import type { Case } from './rig.ts'

export const traitCases: readonly Case[] = [
  {
    name: 'traits: are complete and within their bounds',
    async run(rig) {
      const { traits } = rig
      assert.match(traits.kind, /^[a-z][a-z0-9-]*$/, 'kind: short, for logs and counters')
      for (const name of ['durable', 'shared', 'push'] as const) assert.equal(typeof traits[name], 'boolean', name)
      assert.ok(['fifo', 'approximate'].includes(traits.ordering), `ordering: ${traits.ordering}`)
      assert.ok(['client', 'server'].includes(traits.clock), `clock: ${traits.clock}`)
      assert.ok(['microtask', 'macrotask'].includes(traits.gather), `gather: ${traits.gather}`)
      const { payloadBytesMax, ttlResolutionMs, pollMs } = traits
      assert.ok(Number.isSafeInteger(payloadBytesMax) && payloadBytesMax >= 1, `payloadBytesMax: ${payloadBytesMax}`)
      assert.ok(Number.isSafeInteger(ttlResolutionMs) && ttlResolutionMs >= 1, `ttlResolutionMs: ${ttlResolutionMs}`)
      assert.ok(ttlResolutionMs <= 1_000, `ttlResolutionMs: ${ttlResolutionMs}: a second is as coarse as it may be`)
      assert.ok(pollMs.min >= 1 && pollMs.min <= pollMs.max, `pollMs: from ${pollMs.min} to ${pollMs.max}`)
      assert.ok(pollMs.max <= limits.timerMsMax, `pollMs.max: ${pollMs.max}`)
    },
  },
  {
    name: 'traits: are the same on every Storage object of the same data',
    async run(rig) {
      assert.deepEqual((await rig.other()).traits, rig.traits)
    },
  },
]
