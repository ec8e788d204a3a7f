/**
 * What can be set on a decoder and its calls.
 *
 * @module
 */

import type { Clock } from '../../clock.ts'
import { guardDuration, guardInteger, InvalidArgumentError } from '../../errors.ts'
import { limits } from '../../limits.ts'
import type { AfterExecution, Logger } from '../../options.ts'
import type { Storage } from '../../storage.ts'
import { createVpicClient, type VpicClient, type VpicClientOptions, vpicBatchMax } from './client.ts'
import type { VinPayload } from './handler.ts'
import type { VinPolicyChanges } from './policy.ts'
import type { DecodedVin } from './row.ts'

/** What can be set on a decoder. */
export interface VinDecoderOptions {
  /** Where jobs and answers live. Default: memory of this decoder's own. */
  readonly storage?: Storage
  /** Namespace within the storage; decoders of one name share their answers. Default: `vin-decode`. */
  readonly name?: string
  /** A client, or the options of {@link createVpicClient}. Default: NHTSA's own address. */
  readonly client?: VpicClient | VpicClientOptions
  /** Changes against {@link defaultPolicy}. */
  readonly policy?: VinPolicyChanges
  readonly batch?: {
    /** VINs in one call, 1 to 50. Default: 50. */
    readonly size?: number
    /** How long the first VIN of a call waits for company, ms. Default: 10. */
    readonly waitMs?: number
    /** Calls at once in this process. Default: 1. */
    readonly concurrency?: number
  }
  /** Least time between two calls of this process, ms; 429s were seen from 5 a second on. Default: 200; 0 for none. */
  readonly minIntervalMs?: number
  /** Accept partial VINs (`*` for unknown characters). Default: false. */
  readonly partial?: boolean
  /** Whether this process asks vPIC itself, or leaves that to others on the same storage. Default: true. */
  readonly worker?: boolean
  /** How long a `decode` waits, ms; Infinity for as long as it takes. Default: half an hour, three holds of a throttle. */
  readonly timeout?: number
  /** As `leaseMs` of the queue. */
  readonly leaseMs?: number
  /** As `stopTimeout` of the queue. */
  readonly stopTimeout?: number
  /** Called after the policy has set the TTL. */
  readonly afterExecution?: AfterExecution<VinPayload, DecodedVin>
  /** pino's shape. Gets classes and codes, never VINs or answers. */
  readonly logger?: Logger
  readonly clock?: Clock
  readonly random?: () => number
}

/** What can be set on one `decode`. */
export interface DecodeOptions {
  /** 1980 to 2100; another one is another question. Default: none. */
  readonly modelYear?: number | null
  /** ms; default: the decoder's. */
  readonly timeout?: number
  /** Ends the wait, not the job. */
  readonly signal?: AbortSignal
}

/** What can be set on `decodeMany`. */
export interface DecodeManyOptions extends Omit<DecodeOptions, 'modelYear'> {
  /** Rows begun and not yet taken, at most: bounds memory. Default: 500. */
  readonly inFlightMax?: number
}

/** A row with more than a VIN. */
export interface VinRequest {
  readonly vin: unknown
  readonly modelYear?: number | null
}

/** @throws InvalidArgumentError */
export function clientOf(client: VinDecoderOptions['client'] = {}): VpicClient {
  if (typeof client !== 'object' || client === null) {
    throw new InvalidArgumentError('options.client', 'a client, or the options of one', client)
  }
  const { decode, decodeBatch } = client as Partial<VpicClient>
  if (decode === undefined && decodeBatch === undefined) return createVpicClient(client as VpicClientOptions)
  if (typeof decode !== 'function' || typeof decodeBatch !== 'function') {
    throw new InvalidArgumentError('options.client', 'a client with decode and decodeBatch', client)
  }
  return client as VpicClient
}

/** @throws InvalidArgumentError */
export function guardBatch(batch: VinDecoderOptions['batch'] = {}): {
  size: number
  waitMs: number
  concurrency: number
} {
  const { size = vpicBatchMax, waitMs = 10, concurrency = 1 } = batch
  guardInteger('options.batch.size', size, 1, vpicBatchMax)
  guardDuration('options.batch.waitMs', waitMs)
  guardInteger('options.batch.concurrency', concurrency, 1, limits.concurrencyMax)
  return { size, waitMs, concurrency }
}
