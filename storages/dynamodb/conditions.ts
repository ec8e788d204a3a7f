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
 * collected. (Past its end as far as a condition tells: a record of a later format than the first may have to stay for longer
 * than its state and time say, so one of those is read, and replaced with UNCHANGED.) UNCHANGED lets a record become another: its version is still the one that the machine was asked about. Versions
 * are never used twice, so nothing that happened in between goes unnoticed, not even a removal and a new record of the same
 * id. No write goes without one of them, but that of payloads, whose keys are never used twice.
 *
 * They are written without parentheses that precedence makes needless (NOT, AND, OR): dynalite takes milliseconds for each level of
 * them.
 *
 * @module
 */

/** A condition. */
export interface Condition {
  readonly expression: string
  /** The attributes in it, by their names in the entities; there with a `#`. */
  readonly attributes: readonly string[]
  /** The values in it; there with a `:`. */
  readonly values?: Readonly<Record<string, string | number>>
}

/** No record, or one of the first format that is past its end at `now`. */
export const FREE = (now: number): Condition => ({
  expression: 'attribute_not_exists(#pk) OR #v = :first AND #s IN (:completed, :failed) AND #t <= :now',
  attributes: ['pk', 'v', 's', 't'],
  values: { first: 1, completed: 'c', failed: 'f', now },
})

/** No item at all. */
export const ABSENT: Condition = { expression: 'attribute_not_exists(#pk)', attributes: ['pk'] }

/** The very item that was read. */
export const UNCHANGED = (version: string): Condition => ({
  expression: '#w = :unchanged',
  attributes: ['w'],
  values: { unchanged: version },
})

/** Any item: what is updated must not come back to life by that. */
export const PRESENT: Condition = { expression: 'attribute_exists(#pk)', attributes: ['pk'] }

/** The shards were fewer: their number only grows. */
export const FEWER = (shards: number): Condition => ({
  expression: 'attribute_not_exists(#pk) OR #h < :fewer',
  attributes: ['pk', 'h'],
  values: { fewer: shards },
})
