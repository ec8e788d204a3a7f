/**
 * Node's options for a process that is to run TypeScript, as the tests themselves are run.
 *
 * @module
 */
export const typescript: string[] = ['--import', new URL('./run/preload.mjs', import.meta.url).href]
