import { lazily, script } from './part.ts'
import { claiming } from './parts/claiming.ts'
import { judging } from './parts/judging.ts'
import { announcing } from './parts/telling.ts'

const always = [judging]

export const settle = script('settle', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 own channel or ''; 2 flags; 3 how many; for each: id; verdict (c complete, o complete with an outbox, x fail, f
--   retry, q release) and generation; ttlMs or delayMs; c the result, o ms until the outbox is given up 13, lengths of its
--   rows (UTF-16 units 9, bytes 9), these, the result; x f length of the error (UTF-16 units 9), the error; then, if wanted, a
--   claim's from its 3 on
-- Answers: now; a letter each (s settled, x stale); the claim's from its ms held on; then what the caller is told
`,
  uses: [...always, announcing, lazily(claiming, always)],
  body: /* lua */ `
-- a write that needs no memory comes first: Redis then lets the others pass even at maxmemory
call('DEL', KEYS[1])
local letters, ended, last = {}, {}, 3 + ARGV[3] * 4
for i = 4, last, 4 do
  local id, kind, gen = ARGV[i], sub(ARGV[i + 1], 1, 1), sub(ARGV[i + 1], 2)
  local key, letter = rec .. id, 'x'
  local v = head(key)
  if v ~= '' and generation(v) == gen and not gone(id, v) then
    if byte(v, 27) == 112 then
      letter = 's'
      if not inline(v) then ended[#ended + 1] = id end
      verdict(id, key, v, kind, gen, ARGV[i + 2], ARGV[i + 3])
    elseif again(v, kind) then letter = 's' end
  end
  letters[#letters + 1] = letter
end
if ended[1] then call('ZREM', leases, unpack(ended)) end
queued()
local out = { now, table.concat(letters) }
if postedSome then tellRelays(0) end
if ARGV[last + 1] then claim(last + 1, out) elseif soonest then announce(soonest) end
return answer(out)
`,
})
