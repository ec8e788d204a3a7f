import { part } from '../part.ts'
import { missing } from './finishing.ts'

/**
 * Leasing one due record, given whole: `lease(id, v, gen, ms)` answers the record as it was (the caller knows what a lease
 * changes) or as it is, or false and the failed record if its attempts were used up. `leased()` must follow.
 */
export const leasing = part(
  'leasing',
  [missing],
  /* lua */ `
local adds, drops, places = {}, {}, 0
local function leased()
  if drops[1] then call('ZREM', leases, unpack(drops)) end
  if adds[1] then call('ZADD', leases, unpack(adds)) end
  adds, drops = {}, {}
end
-- a new lease in place of what stands there; writes the record anew only if it does not fit or an error goes
local function writeLease(id, v, gen, ms, attempts)
  local a, b, c = parts(v)
  local front = (now + ms) .. 'p' .. sub(v, 28, 28) .. attempts .. sub(v, 36, 42)
  local failing = byte(v, 27) == 102
  if a - 54 == #gen and not failing then
    call('SETRANGE', rec .. id, 13, front .. sub(v, 43, 53) .. gen)
    return v
  end
  if failing then c = c + 18 + sub(v, c + 9, c + 17) end
  v = sub(v, 1, 13) .. front .. fmt('%03d', #gen) .. sub(v, 46, 53) .. gen .. sub(v, a, b + cl - 1) .. sub(v, c)
  call('SET', rec .. id, v)
  return v
end
local function lease(id, v, gen, ms)
  local attempts, hidden, state = sub(v, 29, 35), inline(v), sub(v, 27, 27)
  if state == 'f' and not hidden then call('SREM', fails, id) end
  if attempts >= sub(v, 36, 42) then
    drops[#drops + 1] = id
    return false, miss(id, v, 'E', string.rep(' ', #gen), failureTTL(v), 'x', '000000000000000000', '')
  end
  v = writeLease(id, v, gen, ms, attempts == '0000000' and '0000001' or fmt('%07d', attempts + 1))
  if hidden then inlined(id, state, 'p', ends(id, v, now + ms)) return v end
  local n = #adds
  adds[n + 1], adds[n + 2], places = us + ms * 1000 + places / 4, id, places + 1
  return v
end
`,
)
