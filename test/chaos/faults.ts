/**
 * The faults of a chaos round: one after the other, at random, some of them at the same time.
 *
 * @module
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Fleet, Member } from '../support/fleet/fleet.ts'
import type { Site, Trouble } from '../support/fleet/sites.ts'
import type { Seeded } from '../support/seeded.ts'

/** What is done. */
export type FaultKind =
  | 'kill a worker'
  | 'kill a producer'
  | 'pause a process'
  | 'shift a clock'
  | 'shift all clocks'
  | `storage: ${Trouble}`

/** How much of what is done in a round. */
const shares: readonly (readonly [FaultKind, number])[] = [
  ['kill a worker', 30],
  ['kill a producer', 12],
  ['pause a process', 20],
  ['shift a clock', 12],
  ['shift all clocks', 4],
]

/** Of a hundred faults, so many are the storage's. */
const troubleShare = 25

/** The longest pause of a process, ms: more than twice a lease. */
const pauseMsMax = 2_500

/** The longest time between two faults, ms. */
const calmMsMax = 400

/** What a round's faults are made of. */
export interface FaultsOptions {
  readonly fleet: Fleet
  readonly site: Site
  readonly random: Seeded
  readonly ms: number
  /** How wrong a clock may be, ms, in either direction. */
  readonly skewMsMax: number
  readonly progress: () => Promise<boolean>
  /** Told of each fault. */
  readonly onFault: (kind: FaultKind) => void
}

/** Makes faults for so long; none lasts beyond the end of the call. */
export async function makeFaults(options: FaultsOptions): Promise<void> {
  const { fleet, site, random, ms, skewMsMax, progress, onFault } = options
  const lasting = new Set<Promise<void>>()
  const skew = (): number => Math.round((random.next() * 2 - 1) * skewMsMax)
  for (const end = performance.now() + ms; performance.now() < end; await sleep(random.below(calmMsMax))) {
    const kind = pick(site, random)
    const member = choose(fleet, random, kind === 'kill a producer' ? 'producer' : null)
    onFault(kind)
    switch (kind) {
      case 'kill a worker':
      case 'kill a producer':
        await fleet.replace(kind === 'kill a worker' ? choose(fleet, random, 'worker') : member)
        break
      case 'pause a process': {
        const pause = paused(fleet, member, random.below(pauseMsMax)).finally(() => lasting.delete(pause))
        lasting.add(pause)
        break
      }
      case 'shift a clock':
        fleet.skew(skew(), member)
        break
      case 'shift all clocks':
        fleet.skew(skew())
        break
      default:
        await site.befall(kind.slice('storage: '.length) as Trouble, random)
        // Whatever it was, all must get going again.
        await Promise.all(lasting)
        await progress()
    }
  }
  await Promise.all(lasting)
  fleet.skew(0)
}

function pick({ troubles }: Site, random: Seeded): FaultKind {
  if (troubles.length > 0 && random.below(100) < troubleShare) return `storage: ${random.pick(troubles)}`
  let place = random.below(shares.reduce((sum, [, share]) => sum + share, 0))
  for (const [kind, share] of shares) {
    place -= share
    if (place < 0) return kind
  }
  return 'kill a worker'
}

function choose(fleet: Fleet, random: Seeded, role: Member['role'] | null): Member {
  return random.pick(fleet.members.filter((member) => role === null || member.role === role))
}

/** Lets the process that has the place now hang for so long. It may be killed meanwhile. */
async function paused(fleet: Fleet, member: Member, ms: number): Promise<void> {
  const { process } = member
  fleet.pause(member)
  await sleep(ms)
  if (member.process === process) fleet.resume(member)
}
