import { prelude } from './prelude.ts'

/** ARGV: 1 own channel. It is idle no more: its handle closes. */
export const retire = /* lua */ `${prelude}
return call('ZREM', idle, own)
`
