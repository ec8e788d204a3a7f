/**
 * The conditions that writes carry, against the time line of a record:
 *
 * ```
 *            enqueue           claim           settle                   TTL ends        collected
 *               |                |                |                        |                |
 *   no item     |  queued        |  processing    |  completed, failed     |  past its end  |   no item
 * --------------+----------------+----------------+------------------------+----------------+------------>
 *               |    ^           |    ^    |      |    ^                   |                |        time
 *               |    '-- cancel  |    '----'      |    '-- touch           |                |
 *               |                |   extend       |                        |                |
 *
 *   FREE        |    UNCHANGED   |   UNCHANGED    |       UNCHANGED        |           FREE
 *
 *   (failing is like queued; a lease past its end and grace is claimed with UNCHANGED, too)
 * ```
 *
 * FREE lets a record be made: there is no item, or one that is past its end and counts as none, whether or not it was
 * collected. UNCHANGED lets a record become another: its version is still the one that the machine was asked about. Versions
 * are never used twice, so nothing that happened in between goes unnoticed, not even a removal and a new record of the same
 * id. No write goes without one of them, but that of payloads, whose keys are never used twice.
 *
 * @module
 */

import type { Condition } from 'dynamodb-toolbox/entity/actions/parseCondition'

/** No record, or one that is past its end at `now`. */
export const FREE = (now: number): Condition =>
  ({
    or: [
      { attr: 'pk', exists: false },
      {
        and: [
          { attr: 's', in: ['c', 'f'] },
          { attr: 't', lte: now },
        ],
      },
    ],
  }) as Condition

/** No item at all. */
export const ABSENT: Condition = { attr: 'pk', exists: false } as Condition

/** The very item that was read. */
export const UNCHANGED = (version: string): Condition => ({ attr: 'w', eq: version }) as Condition

/** Any item: what is updated must not come back to life by that. */
export const PRESENT: Condition = { attr: 'pk', exists: true } as Condition

/** The shards were fewer: their number only grows. */
export const FEWER = (shards: number): Condition =>
  ({
    or: [
      { attr: 'pk', exists: false },
      { attr: 'h', lt: shards },
    ],
  }) as Condition
