import { lazily, part } from '../part.ts'
import { inlining } from './inlining.ts'
import { living } from './layout.ts'
import { queueing } from './queueing.ts'

/** An attempt that failed or is given back. `body`: length of the error in UTF-16 units (9), error. */
export const returning = lazily(
  part(
    'back',
    [living, inlining, queueing],
    /* lua */ `
local function requeue(id, v, state, ms)
  if inline(v) then return inlined(id, 'p', state, ends(id, v, now + ms)) end
  queue(id, ms)
end
local function fail(id, key, v, ms, body)
  local _, _, c = parts(v)
  local whole = call('GET', key)
  call('SET', key, sub(v, 1, 13) .. (now + ms) .. 'f' .. sub(v, 28, c - 1)
    .. sub(body, 1, 9) .. fmt('%09d', #body - 9) .. sub(body, 10) .. sub(whole, c))
  if not inline(v) then call('SADD', fails, id) end
  requeue(id, v, 'f', ms)
end
local function release(id, key, v, ms)
  call('SETRANGE', key, 13, (now + ms) .. 'q' .. sub(v, 28, 28) .. fmt('%07d', sub(v, 29, 35) - 1))
  requeue(id, v, 'q', ms)
end
local function back(kind, id, key, v, ms, body)
  if kind == 'q' then return release(id, key, v, ms) end
  return fail(id, key, v, ms, body)
end
`,
  ),
  [living, inlining, queueing],
)
