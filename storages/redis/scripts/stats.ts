import { prelude } from './prelude.ts'

/** ARGV: none. Answers: how many are queued, failing, and leased; ms held. */
export const stats = /* lua */ `${prelude}
local function inline(state) return call('ZCOUNT', base .. 'n' .. state, '(' .. now, '+inf') end
local failing, till = call('SCARD', fails), tonumber(call('GET', base .. 'h') or 0)
return {
  call('ZCARD', due) - failing + inline('q'), failing + inline('f'), call('ZCARD', leases) + inline('p'),
  math.max(0, till - now),
}
`
