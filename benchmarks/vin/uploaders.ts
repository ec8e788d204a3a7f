/**
 * Those who upload a file of VINs and want every row decoded: by askonce, by BullMQ with its deduplication, and by plain Maps: of what is
 * under way (single-flight), or of all answers. All ask vPIC by the same client.
 *
 * @module
 */

import { createVinDecoder, createVpicClient, type VinDecoderOptions } from '../../src/presets/vin/index.ts'
import type { Storage } from '../../src/storage.ts'
import { type LoadedPeer, peer } from '../redis/peer.ts'
import { pool } from '../scenarios/measure.ts'

/** Rows that are under way at once, in each process: the preset's own default. */
const rowsInFlight = 500
/** Single calls of vPIC at once, in each process. */
const callsInFlight = 16

/** One process's part. */
export interface Uploader {
  /** Decodes each row; answers how many were. */
  upload(rows: readonly string[]): Promise<number>
  close(): Promise<void>
}

export interface Place {
  readonly baseUrl: string
  /** For askonce. */
  readonly storage: () => Storage | Promise<Storage>
  /** For BullMQ. */
  readonly redisUrl: string | null
}

export const uploaders = {
  askonce: (place: Place) => askonce(place, { size: 50 }),
  'askonce, single calls': (place: Place) => askonce(place, { size: 1, concurrency: callsInFlight }),
  'single-flight': (place: Place) => map(place, false),
  'answers kept in a Map': (place: Place) => map(place, true),
  'BullMQ, deduplication': (place: Place) => bullmq(place, (vin) => ({ deduplication: { id: vin } })),
  'BullMQ, job ids kept': (place: Place) => bullmq(place, (vin) => ({ jobId: `vin-${vin}` })),
} satisfies Record<string, (place: Place) => Promise<Uploader>>

export type UploaderName = keyof typeof uploaders

async function askonce(place: Place, batch: NonNullable<VinDecoderOptions['batch']>): Promise<Uploader> {
  const decoder = createVinDecoder({
    storage: await place.storage(),
    client: { baseUrl: place.baseUrl },
    batch,
    // The stand-in bans nobody for asking too often.
    minIntervalMs: 0,
  })
  await decoder.start()
  return {
    async upload(rows) {
      let decoded = 0
      for await (const outcome of decoder.decodeMany(rows, { inFlightMax: rowsInFlight })) if (outcome.ok) decoded++
      return decoded
    },
    close: () => decoder.close(),
  }
}

/** @param keeps - whether answers are kept, for ever */
async function map({ baseUrl }: Place, keeps: boolean): Promise<Uploader> {
  const client = createVpicClient({ baseUrl })
  const running = new Map<string, Promise<unknown>>()
  const queued: (() => void)[] = []
  let calls = 0
  const call = async (vin: string): Promise<unknown> => {
    if (calls === callsInFlight) await new Promise<void>((resolve) => queued.push(resolve))
    else calls++
    try {
      return await client.decode({ vin })
    } finally {
      const next = queued.shift()
      if (next === undefined) calls--
      else next()
    }
  }
  const decode = (vin: string): Promise<unknown> => {
    const known = running.get(vin)
    if (known !== undefined) return known
    const made = keeps ? call(vin) : call(vin).finally(() => running.delete(vin))
    running.set(vin, made)
    return made
  }
  return { upload: (rows) => inFlight(rows, decode), close: async () => {} }
}

async function inFlight(rows: readonly string[], decode: (vin: string) => Promise<unknown>): Promise<number> {
  let decoded = 0
  await pool(rows.length, rowsInFlight, async (index) => {
    if ((await decode(rows[index] as string)) != null) decoded++
  })
  return decoded
}

/** Producer and worker of one process; results are kept for an hour. */
async function bullmq(place: Place, options: (vin: string) => object): Promise<Uploader> {
  const loaded = await peer('bullmq')
  if (typeof loaded === 'string') throw new Error(loaded)
  const { Queue, QueueEvents, Worker } = (loaded as LoadedPeer).module
  const { hostname: host, port } = new URL(place.redisUrl ?? '')
  const connection = { host, port: Number(port) }
  const client = createVpicClient({ baseUrl: place.baseUrl })
  const queue = new Queue('vin', { connection })
  const events = new QueueEvents('vin', { connection })
  // Each wait listens to both.
  events.setMaxListeners(0)
  queue.setMaxListeners(0)
  const handler = (job: { data: { vin: string } }) => client.decode(job.data)
  const worker = new Worker('vin', handler, { connection, concurrency: callsInFlight })
  await Promise.all([queue.waitUntilReady(), events.waitUntilReady(), worker.waitUntilReady()])
  const decode = async (vin: string) => {
    const job = await queue.add('decode', { vin }, { ...options(vin), removeOnComplete: { age: 3_600 } })
    return job.waitUntilFinished(events, 60_000)
  }
  return {
    upload: (rows) => inFlight(rows, decode),
    async close() {
      await worker.close()
      await events.close()
      await queue.close()
    },
  }
}
