import { script } from './part.ts'
import { inlining } from './parts/inlining.ts'
import { living } from './parts/layout.ts'

export const extend = script('extend', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 ''; 2 flags; 3.. id, generation, leaseMs of each
-- Answers: a letter each: e extended, x stale
`,
  uses: [living, inlining],
  body: /* lua */ `
local letters, scores = {}, {}
-- a write that needs no memory comes first: Redis then lets the others pass even at maxmemory
call('DEL', KEYS[1])
for i = 3, #ARGV, 3 do
  local id, gen, ms = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local v, letter = head(rec .. id), 'x'
  if v ~= '' and byte(v, 27) == 112 and generation(v) == gen and not gone(id, v) then
    letter = 'e'
    call('SETRANGE', rec .. id, 13, tostring(now + ms))
    if inline(v) then
      inlined(id, 'p', 'p', ends(id, v, now + ms))
    else
      local n = #scores
      scores[n + 1], scores[n + 2] = us + ms * 1000, id
    end
  end
  letters[#letters + 1] = letter
end
if scores[1] then call('ZADD', leases, unpack(scores)) end
return table.concat(letters)
`,
})
