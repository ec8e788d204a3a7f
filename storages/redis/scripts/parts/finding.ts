/** What becomes of an item of `enqueue`: its record was written, or another is in the place. */

import { lazily, part } from '../part.ts'
import { inlining } from './inlining.ts'
import { living } from './layout.ts'
import { meeting } from './meeting.ts'
import { queueing } from './queueing.ts'
import { renewing } from './renewing.ts'

/** A record was written: what follows, and the answer. */
export const making = part(
  'making',
  [queueing, inlining],
  /* lua */ `
local function made(id, v, letter, last)
  if letter == 'c' then
    queue(id, sub(v, 14, 26) - now)
    return 'c'
  end
  inlined(id, nil, letter == 'H' and 'q' or 'p', last)
  return letter, letter == 'H' and sub(v, 14, 26) or nil
end
`,
)

/** There is a record already: it is met; or run anew, or replaced if it is past its end. */
export const finding = part(
  'found',
  [making, meeting, lazily(renewing, [living])],
  /* lua */ `
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
`,
)
