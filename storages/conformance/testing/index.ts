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
export { type CheckedOperations, type Model, openModel } from './model.ts'
export { type DecidedIn, RecordChecker, type RecordCheckerOptions, type RecordOracle } from './record-checker.ts'
export { Seeded } from './seeded.ts'
