import { lazily, part } from '../part.ts'
import { inlining } from './inlining.ts'
import { living } from './layout.ts'
import { post } from './posting.ts'
import { telling } from './telling.ts'

/** Ending a record: it lives on until `at`, or until its outbox (if any) is given up. Answers the record. */
const finishing = part(
  'finishing',
  [living, inlining, telling, post],
  /* lua */ `
local function finish(id, v, state, attempts, gen, at, body, box)
  local a, b, c = parts(v)
  local flags, last = byte(v, 28), box and math.max(at, tonumber(sub(box, 1, 13))) or at
  local ended = sub(v, 1, 13) .. at .. state .. (box and '2' or '0') .. attempts .. sub(v, 36, 42)
    .. fmt('%03d', #gen) .. sub(v, 46, 49) .. '0000' .. gen .. sub(v, a, b - 1) .. body
  call('SET', rec .. id, ended, 'PXAT', before(last))
  if flags > 49 then call('DEL', base .. 'k:' .. id) end
  if flags % 2 == 1 then inlined(id, sub(v, 27, 27)) end
  if box then post(id, box, last) end
  if c > b then tell(sub(v, b, c - 1), 's', id, box and 'O' .. box .. ended or ended) end
  return ended
end
`,
)

/**
 * Ending a record without a result: a result that is kept comes back, with the reason (e error, x exhausted, c cancelled);
 * without one it is `state`, or nothing is done if that is nil. `lengths`: of the error.
 */
export const missing = lazily(
  part(
    'miss',
    [finishing],
    /* lua */ `
local function miss(id, v, state, gen, ttl, reason, lengths, error)
  local attempts, kept = sub(v, 29, 35), byte(v, 28) > 49 and call('GET', base .. 'k:' .. id)
  local good = kept and tonumber(sub(kept, 1, 13)) or 0
  if good > now then
    return finish(id, v, 'M', attempts, gen, good, sub(kept, 14, 26) .. reason .. lengths .. error .. sub(kept, 27))
  end
  return state and finish(id, v, state, attempts, gen, now + ttl, now .. error)
end
`,
  ),
  [finishing],
)
