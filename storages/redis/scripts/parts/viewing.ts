import { part } from '../part.ts'
import { living } from './layout.ts'

/**
 * What a caller who holds no lease may see: ended records whole, an outbox before it; open ones without their payload, the
 * times of a result that is kept before it and the result behind.
 */
export const viewing = part(
  'viewing',
  [living],
  /* lua */ `
local function view(id, v)
  local key, state, more = rec .. id, byte(v, 27), byte(v, 28) > 49
  if state < 97 then
    if #v >= 1024 then v = call('GET', key) end
    local box = more and call('GET', base .. 'o:' .. id)
    return box and 'O' .. box .. v or v
  end
  local _, _, c = parts(v)
  local shown = state == 102 and call('GETRANGE', key, 0, c + 16 + sub(v, c + 9, c + 17)) or sub(v, 1, c - 1)
  local kept = more and call('GET', base .. 'k:' .. id)
  return kept and 'K' .. sub(kept, 1, 26) .. shown .. sub(kept, 27) or shown
end
`,
)

/** What who leases a record gets. */
export const handing = part(
  'handing',
  [living],
  /* lua */ `
-- the record whole, and before it, the times of the result that it keeps
local function forHolder(id, v)
  if byte(v, 28) < 50 then return v end
  local times = call('GETRANGE', base .. 'k:' .. id, 0, 25)
  return times == '' and v or 'k' .. times .. v
end
`,
)
