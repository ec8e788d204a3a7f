/**
 * What a process begins with that is to run TypeScript: `node --import …/preload.mjs file.ts`. In tests this is to be preferred to
 * tsx, which costs each process three times as much; the files themselves run under either.
 */
import { register } from 'node:module'

register('./hooks.mjs', import.meta.url)
