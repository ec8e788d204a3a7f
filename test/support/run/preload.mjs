/**
 * What every test process begins with, before tap's own loaders: types are stripped by tsx (esbuild, cached), not by tap's
 * TypeScript plugin, which takes about two seconds of CPU to load in each of some eighty processes. Tap switches its plugin off by
 * this variable, but on Node 22 and later only.
 */
import { isMainThread } from 'node:worker_threads'

process.env.TAP_TYPE_STRIP_ONLY = '1'
// What tsx registers by being imported serves the main thread only.
if (isMainThread) await import('tsx')
else (await import('tsx/esm/api')).register()
