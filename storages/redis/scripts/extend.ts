import { inlining, prelude } from './prelude.ts'

/** ARGV: 3.. id, generation, leaseMs of each. Answers: a letter each: e extended, x stale. */
export const extend = /* lua */ `${prelude}${inlining}
local letters, scores = {}, {}
call('DEL', KEYS[1])
for i = 3, #ARGV, 3 do
  local id, gen, ms = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local v, letter = head(rec .. id), 'x'
  if v ~= '' and byte(v, 27) == 112 and sub(v, 54, parts(v) - 1) == gen and not gone(v) then
    letter = 'e'
    call('SETRANGE', rec .. id, 13, tostring(now + ms))
    if byte(v, 28) == 49 then
      inlined(id, 'p', 'p', now + ms + resultTTL(v))
    else
      local n = #scores
      scores[n + 1], scores[n + 2] = us + ms * 1000, id
    end
  end
  letters[#letters + 1] = letter
end
if scores[1] then call('ZADD', leases, unpack(scores)) end
return table.concat(letters)
`
