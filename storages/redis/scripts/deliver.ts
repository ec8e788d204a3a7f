import { script } from './part.ts'
import { collecting, delivering } from './parts/delivering.ts'
import { listening } from './parts/posting.ts'

export const deliver = script('deliver', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 own channel or ''; 2 flags; 3 how many; for each: id; generation; what is left, as its length (UTF-16 units 9) and the
--   rows, or ''; delayMs; then, if wanted, of a wish for outboxes: generation; leaseMs; limit; 1 if it was sent before
-- Answers: now; a letter each (d delivered, x stale); of the wish: ms to the next outbox or -1; how many; id and record each,
--   without results; then what the caller is told
`,
  uses: [delivering, collecting, listening],
  body: /* lua */ `
-- a write that needs no memory comes first: Redis then lets the others pass even at maxmemory
call('DEL', KEYS[1])
local letters, last = {}, 3 + ARGV[3] * 4
for i = 4, last, 4 do
  letters[#letters + 1] = deliver(ARGV[i], ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3]))
end
if left then tellRelays(left) end
local out = { now, table.concat(letters) }
if ARGV[last + 1] then
  listenForBoxes()
  collect(ARGV[last + 1], tonumber(ARGV[last + 2]), tonumber(ARGV[last + 3]), ARGV[last + 4] == '1', out)
end
return answer(out)
`,
})
