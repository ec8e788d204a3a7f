/**
 * Files and folders that a run will write: tried before it begins, for it takes long.
 *
 * @module
 */

import { closeSync, lstatSync, mkdirSync, mkdtempSync, openSync, rmdirSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'

const reasons: Record<string, string> = {
  ENOENT: 'its folder is missing',
  ENOTDIR: 'a file is in the place of a folder',
  EEXIST: 'a file is in the place of a folder',
  EISDIR: 'it is a folder',
  EACCES: 'it may not be written',
  EPERM: 'it may not be written',
  EROFS: 'it may not be written',
}

function trying(target: string, attempt: () => void): void {
  try {
    attempt()
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    throw new Error(`can't write ${target}: ${reasons[code] ?? message}`)
  }
}

/**
 * Opens the file for writing, and leaves everything as it was.
 *
 * @throws Error that names the file and why it can't be written, in a line
 */
export function tryFile(file: string): void {
  trying(file, () => {
    const isThere = lstatSync(file, { throwIfNoEntry: false }) !== undefined
    // Who reads from a pipe or a terminal would notice.
    const found = isThere ? statSync(file, { throwIfNoEntry: false }) : undefined
    if (found !== undefined && !found.isFile() && !found.isDirectory()) return
    closeSync(openSync(file, 'a'))
    if (!isThere) rmSync(file)
  })
}

/**
 * Makes the folder, if it is not there yet, and tries whether files can be made in it.
 *
 * @throws Error that names the folder and why it can't be written, in a line
 */
export function tryFolder(folder: string): void {
  trying(folder, () => {
    mkdirSync(folder, { recursive: true })
    rmdirSync(mkdtempSync(path.join(folder, '.try-')))
  })
}
