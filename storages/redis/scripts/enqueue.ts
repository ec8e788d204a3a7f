import { meeting } from './meet.ts'
import { finishing, inlining, prelude, taking, telling, viewing } from './prelude.ts'

/**
 * ARGV: 3.. for each item: id; terms ('' or: delayMs, reject 0|1, wait 0|1, leaseMs or 0; blank-separated); the record from
 * its state on. Answers: now, a letter each, the records of those in capitals, then `mine`. Letters: c created, l created and
 * leased, H created while held (until when, instead of the record); C L own write met again; E exists, M with another
 * payload, F G the same two and leased.
 */
export const enqueue = /* lua */ `${prelude}${inlining}${telling}${finishing}${taking}${viewing}${meeting}
local letters, out, zadd, n = {}, { now, '' }, {}, 0
local function put(key, v, ends)
  if ends then return call('SET', key, v, 'NX', 'PXAT', ends - 1) end
  return call('SET', key, v, 'NX')
end
for i = 3, #ARGV, 3 do
  local id, terms, rest = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local key, letter, at, reject, wait, ms, v, ends = rec .. id, 'c', now, false, false, 0
  if terms ~= '' then
    local delay, r, w, lease = string.match(terms, '(%d+) (%d) (%d) (%d+)')
    at, reject, wait, ms = now + delay, r == '1', w == '1', tonumber(lease)
  end
  if ms == 0 then
    v = now .. at .. rest
  elseif held() then
    local gen = tonumber(sub(rest, 17, 19))
    letter, at = 'H', math.max(at, till)
    v = now .. at .. 'q10000000' .. sub(rest, 10, 27) .. string.rep(' ', gen) .. sub(rest, 28 + gen)
  else
    letter, at = 'l', now + ms
    v = now .. at .. rest
  end
  if ms > 0 then ends = at + resultTTL(v) end
  local made = put(key, v, ends)
  if not made then
    local old = head(key)
    if old == '' or gone(old) then
      call('DEL', key)
      made = put(key, v, ends)
    else
      letter, out[#out + 1] = meet(id, key, old, rest, reject, wait, ms)
    end
  end
  if made and ends then inlined(id, nil, letter == 'H' and 'q' or 'p', ends) end
  if made and letter == 'H' then out[#out + 1] = tostring(at) end
  if made and ms == 0 then
    zadd[n + 1], zadd[n + 2] = us + (at - now) * 1000 + n / 8, id
    n = n + 2
    if not soon or at - now < soon then soon = at - now end
  end
  letters[#letters + 1] = letter
end
if n > 0 then call('ZADD', due, unpack(zadd)) end
if undue[1] then call('ZREM', due, unpack(undue)) end
leased()
if soon then announce(soon) end
out[2] = table.concat(letters)
return answer(out)
`
