/**
 * The status URL: where a client that was answered with 202 learns the outcome.
 *
 * @module
 */

import { guardDuration, JobFailedError } from '../errors.ts'
import { guardFunction, guardObject } from '../settings.ts'
import { belongsTo, isActor } from './build-key.ts'
import { newHttpCounters } from './counters.ts'
import { failureIn } from './failure.ts'
import { type ActorOf, httpDefaults, quiet } from './options.ts'
import { problemBase } from './problem.ts'
import type { ExchangeQueue, HttpQueue } from './record.ts'
import { Refusals } from './refusals.ts'
import { replay } from './stored-response.ts'
import { Trouble } from './trouble.ts'

/** What can be set on `statusOf`: the same as on `idempotent`. */
export interface StatusOptions {
  readonly actor: ActorOf
  readonly actorMissingStatus?: 400 | 401 | 403
  readonly retryAfterMs?: number
  readonly problemBase?: string
  readonly onError?: (error: unknown) => void
}

/**
 * Makes the handler of the status URL: 202 until the request is done, then its outcome as a replay; 404 for what is not known, not
 * kept any more, or another actor's. Never rejects.
 *
 * @throws InvalidArgumentError for an option out of its bounds
 */
export function statusOf(
  queue: ExchangeQueue,
  options: StatusOptions,
): (request: Request, id: string) => Promise<Response> {
  guardObject('options', options)
  guardFunction('options.actor', options.actor)
  const { actor: actorOf, actorMissingStatus = 401, problemBase: base = problemBase, onError = () => {} } = options
  const { retryAfterMs = httpDefaults.retryAfterMs } = options
  guardDuration('options.retryAfterMs', retryAfterMs)
  guardFunction('options.onError', onError)
  const refusals = new Refusals(base, retryAfterMs)
  const trouble = new Trouble(refusals, newHttpCounters(), quiet(onError))
  const exchanges = queue as HttpQueue
  return async (request, id) => {
    try {
      const actor = await actorOf(request)
      if (!isActor(actor)) return refusals.actorMissing(actorMissingStatus)
      if (!belongsTo(id, actor)) return refusals.notFound()
      const status = await exchanges.getStatus(id)
      if (status === null) return refusals.notFound()
      switch (status.state) {
        case 'completed':
          return status.result === undefined ? refusals.notFound() : replay(status.result, base)
        case 'failed':
          return replay(failureIn(new JobFailedError(id, status.attempts, status.error), base).http, base)
        default:
          // While it is refreshed, the older outcome counts.
          return status.previous === undefined ? refusals.accepted(null) : replay(status.previous.result, base)
      }
    } catch (error) {
      return trouble.responseTo(error, 'reading')
    }
  }
}
