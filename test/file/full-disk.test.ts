/** A disk that is really full, two hundred times. */

import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import t from 'tap'
import { StorageError } from '../../src/errors.ts'
import type { ProcessingRecord } from '../../src/record.ts'
import { complete } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { Seeded } from '../support/seeded.ts'
import { bytesIn, onlyFolder } from './support/faulty-fs.ts'
import { hour, item, states, token, until } from './support/jobs.ts'
import { tempFolder } from './support/temp.ts'

const fills = 200
const diskBytes = 3 * 1024 * 1024

/** Mounts a tmpfs; answers why not if that can't be done. */
function mount(folder: string): string | null {
  if (process.platform !== 'linux') return 'needs Linux'
  if (process.getuid?.() !== 0) return 'needs root to mount a tmpfs'
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${diskBytes}`, 'tmpfs', folder], {
    encoding: 'utf8',
  })
  return status === 0 ? null : `cannot mount a tmpfs: ${stderr ?? 'no mount command'}`
}

/** Takes so many bytes of the disk, or as many as there are. */
function fillSome(ballast: string, bytes: number): void {
  try {
    writeFileSync(ballast, Buffer.alloc(bytes))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}

/** Completes jobs; answers which were, or null if there was no room for that. */
async function settleAll(handle: StorageHandle, jobs: readonly ProcessingRecord[]): Promise<string[] | null> {
  const verdict = complete('result', hour)
  const settlements = jobs.map(({ spec, generation }) => ({ id: spec.id, generation, verdict }))
  try {
    const { answers } = await handle.settle(settlements, null)
    return settlements.filter((_, index) => answers[index] === 'settled').map(({ id }) => id)
  } catch (error) {
    if (error instanceof StorageError) return null
    throw error
  }
}

const { path: folder, remove } = tempFolder()
const obstacle = mount(folder)
t.teardown(() => {
  if (obstacle === null) spawnSync('umount', ['-l', folder])
  remove()
})

const title = `${fills} fills of a small disk: nothing acknowledged is lost, and it goes on by itself`
t.test(title, { skip: obstacle ?? false, timeout: 240_000 }, async (t) => {
  const random = new Seeded()
  const settings = { basePath: path.join(folder, 'base'), durability: 'os', compactionSlackBytes: 65_536 } as const
  const handle = await new FileStorage(settings).open('q')
  const ballast = path.join(folder, 'ballast')
  let lost = 0
  let acknowledged = 0
  let refused = 0
  for (let fill = 0; fill < fills; fill++) {
    fillSome(ballast, 256 * 1024 + random.below(2 * 1024 * 1024))
    const kept: string[] = []
    const payload = 'x'.repeat(2_000 + random.below(8_000))
    for (let full = false; !full; ) {
      const ids = Array.from({ length: 1 + random.below(8) }, (_, index) => `${fill}-${kept.length}-${index}`)
      const outcomes = await Promise.allSettled(ids.map((id) => handle.enqueue([item(id, payload)])))
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.status === 'fulfilled') kept.push(ids[index] as string)
        else if (!(outcome.reason instanceof StorageError) || !/ENOSPC/.test(outcome.reason.message))
          throw outcome.reason
        else full = true
      }
    }
    acknowledged += kept.length
    refused++
    for (const seen of [handle, await new FileStorage(settings).open('q')]) {
      lost += (await states(seen, kept)).filter((state) => state !== 'queued').length
      if (seen !== handle) await seen.close()
    }
    rmSync(ballast)
    const done = new Set<string>()
    await until('every job has run', async () => {
      // A snapshot that is just being written takes room, too: what fails is repeated, as the queue does it. What failed
      // may have happened nevertheless, then its lease has to run out.
      const terms = { generation: token(), leaseMs: 1_000, limit: 100 }
      const { jobs } = await handle.claim(terms).catch(() => ({ jobs: [] }))
      await until('they are settled', async () => {
        const settled = await settleAll(handle, jobs)
        for (const id of settled ?? []) done.add(id)
        return settled !== null
      })
      await handle.sweep(1_000).catch(() => 0)
      return kept.every((id) => done.has(id))
    })
    await until('what they took is free again', async () => {
      await handle.touch([...done].map((id) => ({ id, ttlMs: 1 }))).catch(() => {})
      await handle.sweep(1_000).catch(() => 0)
      return bytesIn(onlyFolder(settings.basePath)) < diskBytes / 4
    })
  }
  await handle.close()
  t.comment(`${fills} fills, ${acknowledged} jobs acknowledged, ${lost} lost (seed ${random.seed})`)
  t.equal(refused, fills)
  t.equal(lost, 0, `lost; replay with ASKONCE_SEED=${random.seed}`)
  t.ok(acknowledged > fills, `${acknowledged} jobs were acknowledged`)
})
