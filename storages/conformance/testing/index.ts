/**
 * What proves storages and queues, beside the suite: the fault injector, the checker and the model.
 *
 * @module
 */

export { type FaultKind, type Faults, type NetworkOptions, noFaults } from './faults.ts'
export { faultyRecordStore } from './faulty-record-store.ts'
export {
  type Call,
  type CallName,
  type CallObserver,
  type FaultyStorageOptions,
  faultyStorage,
} from './faulty-storage.ts'
export {
  type HistoryOptions,
  type ReadCommand,
  type Seen,
  type Span,
  type TimedCommand,
  timedCommands,
} from './history.ts'
export { checkLinearizability, type Linearizability, type LinearizabilityOptions } from './linearizability.ts'
export { type CheckedOperations, type Model, openModel } from './model.ts'
export { type DecidedIn, RecordChecker, type RecordCheckerOptions, type RecordOracle } from './record-checker.ts'
export { type HistoryEntry, type RecordedOperation, type RecorderOptions, recordedStorage } from './recorded-storage.ts'
export { Seeded } from './seeded.ts'
