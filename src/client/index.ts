/**
 * The client's half of idempotent requests: one key for one intent, through every retry. For browsers and everything else
 * that has `fetch`, `AbortController` and `crypto`; imports nothing.
 *
 * @module
 */

export { type Attempt, type AttemptHeaders, headersFor, isAttemptFresh } from './attempt.ts'
export { AttemptError, type AttemptErrorCode } from './errors.ts'
export { type MintOptions, mintAttempt } from './mint.ts'
export type { Send } from './one-try.ts'
export { sendAttempt } from './send.ts'
export type { AttemptWait, SendAttemptOptions } from './send-options.ts'
export type { SessionStorage } from './slot.ts'
export { type AttemptStore, type AttemptStoreOptions, attemptStore, type ObtainOptions } from './store.ts'
export type { Connectivity, Sleep } from './waiting.ts'
