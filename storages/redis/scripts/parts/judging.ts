import { part } from '../part.ts'
import { missing } from './finishing.ts'
import { relaying } from './posting.ts'
import { returning } from './returning.ts'

/** Verdicts: ending the lease of a record `v` (its head) that has it. */
export const judging = part(
  'judging',
  [missing, returning, relaying],
  /* lua */ `
local leadsTo, postedSome = { c = 'C', o = 'C', x = 'X', f = 'fX', q = 'q' }, false
-- whether a record that has ended is what a verdict made of it before
local function again(v, kind)
  local state, _, _, c = sub(v, 27, 27), parts(v)
  if state == 'M' and sub(v, c + 13, c + 13) == 'e' then state = 'X' end
  return find(leadsTo[kind], state, 1, true)
end
-- ends the lease of a record that has it
local function verdict(id, key, v, kind, gen, ms, body)
  local attempts = sub(v, 29, 35)
  if kind == 'c' then return finish(id, v, 'C', attempts, gen, now + ms, now .. body) end
  if kind == 'o' then
    local from = 32 + sub(body, 23, 31)
    local box = (now + sub(body, 1, 13)) .. now .. '0000000000' .. sub(body, 14, 22) .. sub(body, 32, from - 1)
    postedSome = true
    return finish(id, v, 'C', attempts, gen, now + ms, now .. sub(body, from), box)
  end
  if kind == 'q' or (kind == 'f' and attempts < sub(v, 36, 42)) then return back(kind, id, key, v, tonumber(ms), body) end
  local ttl = kind == 'f' and failureTTL(v) or ms
  miss(id, v, 'X', gen, ttl, 'e', sub(body, 1, 9) .. fmt('%09d', #body - 9), sub(body, 10))
end
`,
)
