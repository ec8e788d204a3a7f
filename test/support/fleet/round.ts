/**
 * One round: a fleet on a queue of its own, disturbed for a while; then the faults stop, everything must come to its end, and the
 * oracles judge. Long runs are many rounds, so that no process has more to read than a round's records.
 *
 * @module
 */

import { readFileSync, rmSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JobRecord } from '../../../src/record.ts'
import type { StorageHandle } from '../../../src/storage.ts'
import { familyOf } from './families.ts'
import type { FleetOptions } from './fleet.ts'
import { Fleet } from './fleet.ts'
import { type Diary, readDiaries } from './notes.ts'
import { type Judgement, judge, type Violation } from './oracles.ts'
import type { Site } from './sites.ts'

/** What a round is made of. */
export interface RoundOptions extends Omit<FleetOptions, 'stage' | 'folder'> {
  readonly site: Site
  /** For the notes; must not be there yet, is removed. */
  readonly folder: string
  readonly toleranceMs: number
  /** The faults. Called when work is under way. */
  readonly disturb: (fleet: Fleet, progress: () => Promise<boolean>) => Promise<void>
}

/** What it came to. */
export interface RoundReport extends Judgement {
  /** Times that nothing went on for {@link progressMsMax} after a fault. */
  readonly stalls: number
  /** Logs that the storage compacted meanwhile; 0 where there are none. */
  readonly compactions: number
}

/** After a fault the next job must be done within this. */
const progressMsMax = 15_000

/** After the faults everything must have ended within this. */
const drainMsMax = 60_000

/** What ends by itself must be gone within this. */
const leftoverMsMax = 10_000

/** Ids asked for in one call when a round is cleared up. */
const slice = 1_000

/** Runs one. */
export async function runRound(options: RoundOptions): Promise<RoundReport> {
  const { site, queue, folder, disturb, toleranceMs, ...rest } = options
  const fleet = new Fleet({ ...rest, queue, folder, stage: site.stage })
  const more: Violation[] = []
  let stalls = 0
  try {
    const progress = () => isProgress(fleet)
    if (!(await progress())) more.push({ oracle: 'liveness', message: 'nothing began' })
    await disturb(fleet, async () => {
      const goesOn = await progress()
      if (!goesOn) stalls++
      return goesOn
    })
    if (stalls > 0) {
      more.push({
        oracle: 'liveness',
        message: `${stalls} times nothing went on for ${progressMsMax} ms after a fault`,
      })
    }
    await fleet.stop('producer')
    const handle = await site.open(queue)
    try {
      more.push(...(await drain(handle)))
      await fleet.stop('worker')
      const diaries = readDiaries(folder)
      const ids = idsOf(diaries)
      const finals = await read(handle, ids)
      const judgement = judge({ diaries, finals, toleranceMs })
      const compactions = site.compactions()
      await forget(handle, ids)
      more.push(...(await leftovers(site, queue)))
      for (const message of fleet.problems) more.push({ oracle: 'leftovers', message })
      return { ...judgement, violations: [...more, ...judgement.violations], stalls, compactions }
    } finally {
      await handle.close()
    }
  } finally {
    await fleet.end()
    await site.clear(queue)
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Whether a job is completed anew before long. */
async function isProgress(fleet: Fleet): Promise<boolean> {
  const sizes = new Map(fleet.members.map(({ notes }) => [notes, sizeOf(notes)]))
  for (const end = performance.now() + progressMsMax; performance.now() < end; await sleep(20)) {
    for (const { notes } of fleet.members) {
      const from = sizes.get(notes) ?? 0
      if (sizeOf(notes) > from && readFileSync(notes).subarray(from).includes('"kind":"completed"')) return true
    }
  }
  return false
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

async function drain(handle: StorageHandle): Promise<Violation[]> {
  let open = ''
  for (const end = performance.now() + drainMsMax; performance.now() < end; await sleep(50)) {
    // Inline jobs whose runner has died are nobody's: they are forgotten, and some storages count them until they are swept.
    await handle.sweep(Number.MAX_SAFE_INTEGER)
    const { queued, processing, failing } = await handle.stats()
    if (queued === 0 && processing === 0 && failing === 0) return []
    open = `${queued} are queued, ${processing} processing, ${failing} failing`
  }
  return [{ oracle: 'liveness', message: `${drainMsMax} ms after the faults ${open}` }]
}

function idsOf(diaries: readonly Diary[]): string[] {
  const ids = new Set<string>()
  for (const { notes } of diaries) for (const note of notes) if (note.kind === 'call') ids.add(note.id)
  return [...ids]
}

async function read(handle: StorageHandle, ids: readonly string[]): Promise<Map<string, JobRecord | null>> {
  const finals = new Map<string, JobRecord | null>()
  const staying = ids.filter((id) => familyOf(id).stays)
  for (let from = 0; from < staying.length; from += slice) {
    const asked = staying.slice(from, from + slice)
    const { records } = await handle.get(asked)
    for (const [index, id] of asked.entries()) finals.set(id, records[index] ?? null)
  }
  return finals
}

/** Has every record end soon. */
async function forget(handle: StorageHandle, ids: readonly string[]): Promise<void> {
  for (let from = 0; from < ids.length; from += slice) {
    await handle.touch(ids.slice(from, from + slice).map((id) => ({ id, ttlMs: 1 })))
  }
}

async function leftovers(site: Site, queue: string): Promise<Violation[]> {
  for (const end = performance.now() + leftoverMsMax; ; await sleep(50)) {
    const left = await site.leftovers(queue)
    if (left.length === 0) return []
    if (performance.now() < end) continue
    return [{ oracle: 'leftovers', message: `${left.length} are left: ${left.slice(0, 5).join(', ')}` }]
  }
}
