/**
 * `Queue`: the queue with its default storage. The only place where the two meet; all else of the queue knows storages by
 * their contract alone.
 *
 * @module
 */

import { MemoryStorage } from '../storages/memory/index.ts'
import { BaseQueue } from './base-queue.ts'
import type { QueueOptions } from './options.ts'

/**
 * A deduplicating job queue. The id is the identity: the first `enqueue` of an id makes the job, later ones get its state or
 * its result until the TTL ends.
 *
 * @typeParam TPayload - what handlers get
 * @typeParam TResult - what they answer
 */
export class Queue<TPayload = unknown, TResult = unknown> extends BaseQueue<TPayload, TResult> {
  /**
   * @param options - without `storage`, jobs live in a MemoryStorage of this queue's own
   * @throws {@link InvalidArgumentError} for an option out of its bounds
   */
  constructor(options: QueueOptions<TPayload, TResult> = {}) {
    super(options, () => new MemoryStorage(options?.clock === undefined ? {} : { clock: options.clock }))
  }
}
