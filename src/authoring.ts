/**
 * `askonce/storage`: what authors of storages need. The contract, the five-function tier, the machine, the record.
 *
 * @module
 */

export { type Clock, systemClock, type Timer } from './clock.ts'
export {
  AskonceError,
  InvalidArgumentError,
  StorageClosedError,
  StorageError,
  StorageFullError,
  TooLargeError,
} from './errors.ts'
export { limits } from './limits.ts'
export * from './machine.ts'
export * from './record.ts'
export {
  type PackedRecord,
  packRecord,
  recordFormat,
  recordFromText,
  recordToText,
  unpackRecord,
} from './record-codec.ts'
export * from './record-store.ts'
export type * from './storage.ts'
export {
  type CommandName,
  type Condition,
  type Fact,
  type Situation,
  type Transition,
  transitions,
} from './transitions.ts'
