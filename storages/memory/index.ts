/**
 * `askonce/memory`: records in this process's memory.
 *
 * @module
 */

export { MemoryStorage, type MemoryStorageOptions } from './memory-storage.ts'
