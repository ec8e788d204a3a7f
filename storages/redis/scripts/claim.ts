import { script } from './part.ts'
import { claiming } from './parts/claiming.ts'
import { telling } from './parts/telling.ts'

export const claim = script('claim', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 own channel or ''; 2 flags; 3 generation; 4 leaseMs; 5 limit; 6 generations of claims whose answers were lost, each
--   between newlines; 7.. ids (none: whatever is due)
-- Answers: now; ms held; ms to the next due record or -1; jobs (how many, then id and record each); exhausted (the same);
--   then what the caller is told
`,
  uses: [claiming, telling],
  body: /* lua */ `
-- a write that needs no memory comes first: Redis then lets the others pass even at maxmemory
call('DEL', KEYS[1])
local out = { now }
claim(3, out)
return answer(out)
`,
})
