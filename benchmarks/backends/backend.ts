/**
 * What a scenario needs of a backend: a place for queues that starts empty, a session of askonce on it, one of its bare
 * baseline, and a look at what both cost.
 *
 * @module
 */

/** What is measured: askonce, or what somebody would write by hand for the same few calls and no more. */
export type SystemName = 'askonce' | 'bare'

export const backendNames = ['memory', 'file-fsync', 'file-os', 'redis', 'dynamodb'] as const
export type BackendName = (typeof backendNames)[number]

/** How another process reaches the same place. Plain data: it goes from process to process. */
export type Address =
  | { readonly kind: 'memory' }
  | { readonly kind: 'file'; readonly basePath: string; readonly durability: 'fsync' | 'os' }
  | { readonly kind: 'redis'; readonly url: string }
  | { readonly kind: 'dynamodb'; readonly endpoint: string; readonly tableName: string }

/** One queue of a system: a producer, and a worker once one is started. */
export interface Session {
  /** Enqueues one job; resolves when it is stored. Without a payload, a small one. */
  enqueue(id: string, payload?: unknown): Promise<unknown>
  /** Enqueues an id that has completed, and reads its result. */
  duplicate(id: string, payload?: unknown): Promise<unknown>
  /** Enqueues and waits for the result. */
  wait(id: string, payload?: unknown): Promise<unknown>
  /** Enqueues many in the quickest way; without it `enqueue` does, many in flight. */
  fill?(ids: readonly string[]): Promise<void>
  /** Starts a worker; `onRun` is called in each job, and awaited if it answers a promise. */
  work(concurrency: number, onRun: () => unknown): Promise<void>
  /** Jobs whose result is stored. */
  completed(): number
  close(): Promise<void>
}

/** What was spent so far, since whenever. */
export interface Spent {
  /** Processor time of servers, microseconds. That of this process is measured by itself. */
  readonly serverUs: number
  /** Commands, requests or system calls that went out of this process; null where there are none. */
  readonly calls: number | null
}

/** A running backend. */
export interface Site {
  readonly address: Address
  /** Versions and settings, in a line. */
  readonly software: string
  /** A queue on an empty place: whatever an earlier session left is removed. */
  open(system: SystemName): Promise<Session>
  spent(): Promise<Spent>
  /** Bytes kept outside of this process: on disk, in a server. */
  bytesOutside(): Promise<number>
  stop(): Promise<void>
}

/** A storage with a baseline. */
export interface Backend {
  readonly name: BackendName
  /** As people read it. */
  readonly title: string
  /** What its baseline does for a job. */
  readonly baseline: string
  /** Whole jobs a second, very roughly: sizes what can't be tried out first. */
  readonly pace: number
  /** More jobs than this are never queued. */
  readonly depthMax: number
  start(): Promise<Site>
}

/** The job that is run where nothing else is said. */
export const smallPayload = Object.freeze({ vin: '1HGCM82633A004352' })
/** What every handler answers. */
export const smallResult = Object.freeze({ make: 'HONDA', model: 'Accord' })
