/**
 * `askonce/file`: records in a folder, shared by the processes of one machine. Needs `write-file-atomic` 7.
 *
 * @module
 */

export { FileStorage, type FileStorageOptions } from './file-storage.ts'
export type { FileStatus, FileSystem, FolderWatch } from './file-system.ts'
