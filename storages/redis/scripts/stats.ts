import { prelude } from './prelude.ts'

/** ARGV: none. Answers: records in the due set, failing ones among them, leased ones, ms held. Inline records are in none. */
export const stats = /* lua */ `${prelude}
local till = tonumber(call('GET', base .. 'h') or 0)
return { call('ZCARD', due), call('SCARD', fails), call('ZCARD', leases), math.max(0, till - now) }
`
