import { claiming } from './claim.ts'
import { finishing, inlining, prelude, taking, telling } from './prelude.ts'

/** Parts of `settle`: an attempt that failed or is given back. `body`: length of the error in UTF-16 units (9), error. */
const returning = /* lua */ `
local frees, adding, soon = {}, {}, nil
local function requeue(id, v, state, ms)
  if byte(v, 28) == 49 then return inlined(id, 'p', state, now + ms + resultTTL(v)) end
  local n = #adding
  adding[n + 1], adding[n + 2] = us + ms * 1000 + n / 8, id
  if not soon or ms < soon then soon = ms end
end
local function fail(id, key, v, gen, ms, body)
  local a, _, c = parts(v)
  local whole = call('GET', key)
  call('SET', key, sub(v, 1, 13) .. (now + ms) .. 'f' .. sub(v, 28, c - 1)
    .. sub(body, 1, 9) .. fmt('%09d', #body - 9) .. sub(body, 10) .. sub(whole, c))
  if byte(v, 28) == 48 then call('SADD', fails, id) end
  requeue(id, v, 'f', ms)
end
local function release(id, key, v, ms)
  call('SETRANGE', key, 13, (now + ms) .. 'q' .. sub(v, 28, 28) .. fmt('%07d', sub(v, 29, 35) - 1))
  requeue(id, v, 'q', ms)
end
`

/**
 * ARGV: 3 how many; for each: id; verdict (c complete, x fail, f retry, q release) and generation; ttlMs or delayMs; result,
 * error, or for f its length and the error; then, if wanted, a claim's. Answers: now, a letter each (s settled, x stale), the
 * claim's, then `mine`.
 */
export const settle = /* lua */ `${prelude}${inlining}${telling}${finishing}${taking}${claiming}${returning}
local letters, out, last = {}, { now, '' }, 3 + ARGV[3] * 4
local leadsTo = { c = 'C', x = 'X', f = 'fX', q = 'q' }
-- a write that needs no memory comes first: Redis then lets the others pass even at maxmemory
call('DEL', KEYS[1])
for i = 4, last, 4 do
  local id, kind, gen, ms, body = ARGV[i], sub(ARGV[i + 1], 1, 1), sub(ARGV[i + 1], 2), ARGV[i + 2], ARGV[i + 3]
  local key, letter = rec .. id, 'x'
  local v = head(key)
  if v ~= '' and sub(v, 54, parts(v) - 1) == gen and not gone(v) then
    local state, attempts = sub(v, 27, 27), sub(v, 29, 35)
    if state ~= 'p' then
      if string.find(leadsTo[kind], state, 1, true) then letter = 's' end
    else
      letter = 's'
      if byte(v, 28) == 48 then frees[#frees + 1] = id end
      if kind == 'c' then finish(id, v, 'C', attempts, gen, ms, body)
      elseif kind == 'x' then finish(id, v, 'X', attempts, gen, ms, body)
      elseif kind == 'q' then release(id, key, v, tonumber(ms))
      elseif attempts >= sub(v, 36, 42) then finish(id, v, 'X', attempts, gen, failureTTL(v), sub(body, 10))
      else fail(id, key, v, gen, tonumber(ms), body) end
    end
  end
  letters[#letters + 1] = letter
end
if frees[1] then call('ZREM', leases, unpack(frees)) end
if adding[1] then call('ZADD', due, unpack(adding)) end
out[2] = table.concat(letters)
if ARGV[last + 1] then claim(last + 1, out) elseif soon then announce(soon) end
return answer(out)
`
