/**
 * Which profiles are made of a case, and where they are put.
 *
 * @module
 */

import path from 'node:path'
import type { BackendName } from '../backends/backend.ts'
import type { Recording } from './recorder.ts'

/** A round each: looking at both at once would show the looking. */
export const recordings: readonly Recording['kind'][] = ['cpu', 'heap']

/** The file of a profile; DevTools knows it by its ending. */
export function profileFile(
  folder: string,
  scenario: string,
  one: string,
  backend: BackendName,
  kind: Recording['kind'],
): string {
  const name = `${scenario}-${one}-${backend}`.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  return path.join(folder, `${name}.${kind}profile`)
}
