/**
 * Where a fleet works: the storage that its processes share, in words that travel to them.
 *
 * @module
 */

import type { Clock } from '../../../src/clock.ts'
import { systemClock } from '../../../src/clock.ts'
import type { Storage } from '../../../src/storage.ts'
import { FileStorage } from '../../../storages/file/index.ts'
import { RedisStorage } from '../../../storages/redis/index.ts'

/** A storage, as its options. */
export type Stage =
  | { readonly kind: 'file'; readonly basePath: string; readonly durability: 'fsync' | 'os' }
  | { readonly kind: 'redis'; readonly url: string }

/** Makes the storage, as one process has it. */
export function storageOf(stage: Stage, clock: Clock): Storage {
  switch (stage.kind) {
    case 'file': {
      const { basePath, durability } = stage
      return new FileStorage({ basePath, durability, compactionSlackBytes: 64 * 1024, clock })
    }
    case 'redis':
      return new RedisStorage({ url: stage.url, commandTimeout: 1_000, connectTimeout: 1_000, lazyConnect: true })
  }
}

/** The system's clock, wrong by so much. What never jumps stays right. */
export function skewedClock(skewMs: () => number): Clock {
  return { ...systemClock, now: () => systemClock.now() + skewMs() }
}
