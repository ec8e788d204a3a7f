import { lazily, script } from './part.ts'
import { creating } from './parts/creating.ts'
import { finding, making } from './parts/finding.ts'
import { announcing, telling } from './parts/telling.ts'

const always = [creating, making, telling]

export const enqueue = script('enqueue', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 own channel or ''; 2 flags; 3.. for each item: id; terms ('' or: delayMs, reject 0|1, wait 0|1, leaseMs or 0,
--   refresh 0|1, blank-separated); the record from its state on
-- Answers: now, a letter each, the records of those in capitals, then what the caller is told. Letters: c created, l created
--   and leased, H created while held (until when, instead of the record); C L the same as c l, but not by these terms alone
--   (own write met again, or a result is kept); E exists, M with another payload, F G the same two and leased
`,
  uses: [...always, announcing, lazily(finding, always)],
  body: /* lua */ `
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
