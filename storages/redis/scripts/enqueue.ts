import { lazily, script } from './part.ts'
import { creating } from './parts/creating.ts'
import { living } from './parts/layout.ts'
import { meeting } from './parts/meeting.ts'
import { queueing } from './parts/queueing.ts'
import { renewing } from './parts/renewing.ts'

export const enqueue = script('enqueue', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 own channel or ''; 2 flags; 3.. for each item: id; terms ('' or: delayMs, reject 0|1, wait 0|1, leaseMs or 0,
--   refresh 0|1, blank-separated); the record from its state on
-- Answers: now, a letter each, the records of those in capitals, then what the caller is told. Letters: c created, l created
--   and leased, H created while held (until when, instead of the record); C L the same as c l, but not by these terms alone
--   (own write met again, or a result is kept); E exists, M with another payload, F G the same two and leased
`,
  uses: [creating, meeting, queueing, lazily(renewing, [living])],
  body: /* lua */ `
-- a record was written: what follows, and the answer
local function made(id, v, letter, last)
  if letter == 'c' then
    queue(id, sub(v, 14, 26) - now)
    return 'c'
  end
  inlined(id, nil, letter == 'H' and 'q' or 'p', last)
  return letter, letter == 'H' and sub(v, 14, 26) or nil
end
-- there is a record already
local function found(id, v, letter, last, ...)
  local old, ended = head(rec .. id), ''
  if old ~= '' and not gone(id, old) then
    local met, shown
    met, shown, ended = meet(id, old, ...)
    if met then return met, shown end
  end
  local keeps
  v, keeps, last = renew(id, v, last, ended)
  local answered, at = made(id, v, letter, last)
  if not keeps then return answered, at end
  return letter == 'l' and 'L' or 'C', letter == 'l' and forHolder(id, v) or view(id, v)
end
local letters, out = {}, { now, '' }
for i = 3, #ARGV, 3 do
  local id, rest, at, reject, wait, ms, fresh = ARGV[i], ARGV[i + 2], terms(ARGV[i + 1])
  local v, letter, last = new(rest, at, ms)
  local shown
  if put(rec .. id, v, last) then letter, shown = made(id, v, letter, last)
  else letter, shown = found(id, v, letter, last, rest, reject, wait, ms, fresh) end
  letters[#letters + 1], out[#out + 1] = letter, shown
end
queued()
if soonest then announce(soonest) end
out[2] = table.concat(letters)
return answer(out)
`,
})
