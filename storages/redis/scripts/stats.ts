import { script } from './part.ts'
import { holding } from './parts/telling.ts'

export const stats = script('stats', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 ''; 2 flags
-- Answers: how many are queued, failing, and leased; ms held
`,
  uses: [holding],
  body: /* lua */ `
local function inline(state) return call('ZCOUNT', base .. 'n' .. state, '(' .. now, '+inf') end
local failing = call('SCARD', fails)
return {
  call('ZCARD', due) - failing + inline('q'), failing + inline('f'), call('ZCARD', leases) + inline('p'),
  math.max(0, heldTill() - now),
}
`,
})
