/**
 * Records what a piece of work spends: processor time by function, or bytes allocated by function. Runs in the process that is
 * measured.
 *
 * @module
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import path from 'node:path'

/** What is recorded, and where to. */
export interface Recording {
  readonly kind: 'cpu' | 'heap'
  readonly file: string
}

/** Microseconds between two looks. */
const cpuIntervalUs = 200
/** Bytes allocated between two looks. */
const heapIntervalBytes = 16 * 1_024

/** Runs `work` and writes what it spent, as DevTools reads it. */
export async function recorded(recording: Recording, work: () => Promise<unknown>): Promise<void> {
  const session = new Session()
  session.connect()
  try {
    const profile = recording.kind === 'cpu' ? await cpu(session, work) : await heap(session, work)
    mkdirSync(path.dirname(recording.file), { recursive: true })
    writeFileSync(recording.file, JSON.stringify(profile))
  } finally {
    session.disconnect()
  }
}

async function cpu(session: Session, work: () => Promise<unknown>): Promise<unknown> {
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: cpuIntervalUs })
  await session.post('Profiler.start')
  await work()
  return (await session.post('Profiler.stop')).profile
}

async function heap(session: Session, work: () => Promise<unknown>): Promise<unknown> {
  // What was collected meanwhile counts: it is what the collector's work comes of.
  await session.post('HeapProfiler.startSampling', {
    samplingInterval: heapIntervalBytes,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  })
  await work()
  return (await session.post('HeapProfiler.stopSampling')).profile
}
