/**
 * Sending requests: so many at a time, each with a time limit; throttled ones again with ever longer, jittered waits; and
 * what is counted of them.
 *
 * @module
 */

import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import type { Clock } from '../../src/clock.ts'
import { StorageError } from '../../src/errors.ts'
import { unmarshalled } from './attribute-values.ts'
import type { TableDefinition } from './definition.ts'
import { awsName, isConditionFalse, isThrottle, storageError, TableMissingError } from './errors.ts'
import type { ServerClock } from './server-clock.ts'

/** What of a client is used: `DynamoDBClient` of any 3.x, or what does as it. */
export interface DynamoDBClientLike {
  // biome-ignore lint/suspicious/noExplicitAny: commands and outputs are typed by the SDK's own version, which may be any 3.x
  send(command: any, options?: any): Promise<any>
  readonly config: object
}

/** What a storage has done so far, by its own count. */
export interface DynamoDBCounters {
  /** Requests sent, those that the SDK repeated by itself counted once. */
  requests: number
  /** Repetitions by the SDK. */
  repeated: number
  /** Requests refused for their rate, by table or index, after the SDK's own repetitions. */
  throttled: number
  /** Writes that found another version. */
  conflicts: number
  /** Claims among them: another worker was faster, or the index was outdated. */
  claimsLost: number
  /** Writes that were taken for lost and found to have been made. */
  recognised: number
}

interface CallsOptions {
  readonly client: DynamoDBClientLike
  readonly clock: ServerClock
  /** Whether what the SDK measures of the server's time is taken in. */
  readonly measure: boolean
  readonly random: () => number
  readonly requestTimeoutMs: number
  readonly throttleTimeoutMs: number
  readonly concurrency: number
  readonly definition: TableDefinition
  readonly counters: DynamoDBCounters
  /** Told of throttling, at most once in ten seconds. */
  readonly warn: (code: string, message: string) => void
}

/** A condition that did not hold, with what the service sent of the item, and whether the request was sent more than once. */
export class ConditionFalse {
  readonly item: Record<string, unknown> | null
  readonly repeated: boolean

  constructor(item: Record<string, unknown> | null, repeated: boolean) {
    this.item = item
    this.repeated = repeated
  }
}

const backoffMinMs = 50
const backoffMaxMs = 5_000
const warningIntervalMs = 10_000

/** Sends the requests of one storage. */
export class Calls {
  readonly #options: CallsOptions
  #running = 0
  readonly #waiting: (() => void)[] = []
  #warnedAt = Number.NEGATIVE_INFINITY

  constructor(options: CallsOptions) {
    this.#options = options
  }

  /**
   * Sends a command; answers its output, or a {@link ConditionFalse}.
   *
   * @param doing - for errors: `read a record`
   * @throws StorageError
   */
  async send<Output>(doing: string, make: () => unknown): Promise<Output | ConditionFalse> {
    if (this.#running >= this.#options.concurrency) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running++
    try {
      return await this.#send<Output>(doing, make)
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }

  /** Waits before a part of a request is repeated that was left undone. */
  backOff(tries: number): Promise<void> {
    const { clock, random } = this.#options
    return sleep(clock, backoffMs(random, tries - 1))
  }

  async #send<Output>(doing: string, make: () => unknown): Promise<Output | ConditionFalse> {
    const { client, clock, counters, definition, random, throttleTimeoutMs } = this.#options
    const begun = clock.monotonic()
    let repeated = false
    for (let tries = 0; ; tries++) {
      try {
        const output = await this.#once(client, make())
        this.#answered(output)
        return output as Output
      } catch (error) {
        repeated = this.#answered(error) || repeated
        if (isConditionFalse(error)) {
          // Here the SDK leaves attribute values as they are, whatever client it is.
          const { Item: item } = error as { Item?: Record<string, AttributeValue> }
          return new ConditionFalse(item === undefined ? null : unmarshalled(item), repeated)
        }
        if (isThrottle(error)) {
          counters.throttled++
          this.#warn()
          const waitMs = backoffMs(random, tries)
          if (clock.monotonic() - begun + waitMs < throttleTimeoutMs) {
            await sleep(clock, waitMs)
            continue
          }
        }
        if (awsName(error) === 'ResourceNotFoundException') {
          throw new TableMissingError(`The table ${definition.TableName}`, definition, { cause: tidy(error) })
        }
        if (awsName(error) === 'ValidationException' && /specified index/i.test((error as Error).message)) {
          const index = definition.GlobalSecondaryIndexes[0]?.IndexName
          throw new TableMissingError(`The index ${index} of the table ${definition.TableName}`, definition, {
            cause: tidy(error),
          })
        }
        throw storageError(doing, error)
      }
    }
  }

  /** Sends once, with a time limit: the client's own may be none. */
  async #once(client: DynamoDBClientLike, command: unknown): Promise<unknown> {
    this.#options.counters.requests++
    const { requestTimeoutMs } = this.#options
    const abort = new AbortController()
    // The machine's own timer: a clock that tests move by hand must not end requests.
    const timer = setTimeout(() => abort.abort(), requestTimeoutMs)
    try {
      return await client.send(command, { abortSignal: abort.signal })
    } catch (error) {
      if (!abort.signal.aborted) throw error
      throw new StorageError(`DynamoDB did not answer within requestTimeout = ${requestTimeoutMs} ms`)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Counts what the SDK repeated, and takes in the server's time; answers whether it repeated anything. */
  #answered(answer: unknown): boolean {
    const { client, clock, counters, measure } = this.#options
    const attempts = (answer as { $metadata?: { attempts?: number } } | null)?.$metadata?.attempts ?? 1
    counters.repeated += attempts - 1
    if (measure) clock.measured((client.config as { systemClockOffset?: number }).systemClockOffset ?? 0)
    // A request that ended without an answer may have been made, as may one before the last of several.
    return attempts > 1 || (answer instanceof Error && (answer as { $metadata?: object }).$metadata === undefined)
  }

  #warn(): void {
    const { clock, warn } = this.#options
    if (clock.monotonic() - this.#warnedAt < warningIntervalMs) return
    this.#warnedAt = clock.monotonic()
    warn('dynamodb_throttled', 'DynamoDB refuses requests for their rate, on the table or its index; they are repeated')
  }
}

function tidy(error: unknown): unknown {
  return storageError('find the table', error).cause
}

/** Full jitter, up to ever more. */
function backoffMs(random: () => number, tries: number): number {
  return random() * Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.max(0, tries))
}

function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.timer(resolve, ms, true))
}
