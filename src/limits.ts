/**
 * Every bound of askonce, each with its reason. Options and guards read them from here, so that the docs, the errors
 * and the checks can never disagree.
 *
 * @module
 */

const year = 365.25 * 24 * 60 * 60 * 1000

export const limits = Object.freeze({
  /** Bytes of UTF-8 in an id. DynamoDB allows 2,048 bytes in a partition key: half of it leaves room for a prefix. */
  idBytesMax: 1024,
  /** Bytes of UTF-8 in a queue's name; it becomes part of keys, channels and folders. */
  nameBytesMax: 128,
  /** The longest TTL, delay, lease or time-out in ms: a hundred years. `Date` and doubles stay exact far beyond. */
  durationMsMax: 100 * year,
  /** The shortest lease in ms: its heartbeat, a third of it, must outlast an ordinary pause of the event loop. */
  leaseMsMin: 30,
  /** The longest single timer Node keeps (2^31 - 1 ms); longer delays are slept in pieces. */
  timerMsMax: 2_147_483_647,
  /** Attempts of one job. The counter must stay exact in every storage and in Lua's doubles. */
  maxAttemptsMax: 1_000_000,
  /** Jobs one worker runs at once; a slot costs memory and a lease to renew. */
  concurrencyMax: 100_000,
  /** Jobs handed to one call of a batch handler. */
  batchSizeMax: 10_000,
  /** Encoded bytes of a payload or a result, unless the storage's own bound is smaller. A queue is no file store. */
  payloadBytesMax: 16 * 1024 * 1024,
  /** Encoded bytes of an error: message and cause of a runaway error must not fill the storage. */
  errorBytesMax: 64 * 1024,
  /** Causes kept below an error; also what ends a cycle of causes. */
  errorCauseDepthMax: 8,
  /** Encoded bytes of the rows that one completion posts: they travel within the record, in every storage. */
  outboxBytesMax: 64 * 1024,
  /** Characters of the marks of one record, some 60 effects: they are read with it every time. */
  marksCharsMax: 4_096,
  /** Characters of the name of an effect or an outbox row: letters, digits and `_.:-` only, for they become parts of keys. */
  effectNameCharsMax: 64,
  /** Items that one storage call carries: bounds the time one call can hold a storage, and a Lua script's stack. */
  callItemsMax: 1_000,
  /** Rounds of compare-and-swap before a change is given up as contended. */
  swapRoundsMax: 200,
})
