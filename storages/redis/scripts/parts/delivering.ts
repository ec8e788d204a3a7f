import { part } from '../part.ts'
import { living } from './layout.ts'
import { posting, relaying } from './posting.ts'

/** Reading and writing an outbox that a living record has. */
const boxing = part(
  'boxing',
  [living, posting],
  /* lua */ `
-- a record that has ended, up to its outcome, and its outbox; nil if there is none
local function boxOf(id)
  local v = head(rec .. id)
  local box = v ~= '' and byte(v, 27) == 67 and byte(v, 28) > 49 and not gone(id, v) and call('GET', boxes .. ':' .. id)
  if not box then return nil end
  local _, _, c = parts(v)
  return sub(v, 1, c + 12), box
end
-- where the rows of an outbox start
local function rowsAt(box) return 46 + sub(box, 34, 36) end
local function holder(box) return sub(box, 46, rowsAt(box) - 1) end
local function write(id, box)
  call('SET', boxes .. ':' .. id, box, 'KEEPTTL')
end
`,
)

/** Ending the lease of an outbox; what is left of it is delivered in `ms`. `left`: the soonest of those. */
export const delivering = part(
  'delivering',
  [boxing, relaying],
  /* lua */ `
local left
local function deliver(id, gen, rest, ms)
  local v, box = boxOf(id)
  if not box or holder(box) ~= gen then return 'x' end
  if rest ~= '' then
    write(id, sub(box, 1, 13) .. (now + ms) .. sub(box, 27, 33) .. '000' .. rest)
    boxIn(id, ms)
    left = math.min(left or ms, ms)
    return 'd'
  end
  local key, at = rec .. id, tonumber(sub(v, 14, 26))
  call('DEL', boxes .. ':' .. id)
  call('ZREM', boxes, id)
  if at <= now then
    call('DEL', key)
  else
    call('SETRANGE', key, 27, '0')
    call('PEXPIREAT', key, before(at))
  end
  return 'd'
end
`,
)

/** Leasing outboxes that are due, or were leased by the same wish, if that was sent before. */
export const collecting = part(
  'collecting',
  [boxing],
  /* lua */ `
local function lease(id, box, gen, ms)
  box = sub(box, 1, 13) .. (now + ms) .. fmt('%07d', sub(box, 27, 33) + 1) .. fmt('%03d', #gen) .. sub(box, 37, 45) .. gen
    .. sub(box, rowsAt(box))
  write(id, box)
  boxIn(id, ms)
  return box
end
local function collect(gen, ms, limit, again, out)
  local found, bytes, at = {}, 0, #out
  local function take(ids, mine)
    for _, id in ipairs(ids) do
      if #found >= limit * 2 then return end
      local v, box = boxOf(id)
      if not box then
        call('ZREM', boxes, id)
      elseif not mine or holder(box) == gen then
        box = mine and box or lease(id, box, gen, ms)
        found[#found + 1], found[#found + 2], bytes = id, 'O' .. box .. v, bytes + #box
      end
    end
  end
  if again then take(call('ZRANGE', boxes, 0, -1), true) end
  local ids
  repeat
    ids = call('ZRANGEBYSCORE', boxes, '-inf', now * 1000 + 999.75, 'LIMIT', 0, math.min(16, limit - #found / 2))
    take(ids)
  until not ids[1] or #found >= limit * 2 or bytes > 4194304
  local first = tonumber(call('ZRANGE', boxes, 0, 0, 'WITHSCORES')[2])
  out[at + 1] = first and math.max(0, math.floor(first / 1000) - now) or -1
  out[at + 2] = #found / 2
  for i = 1, #found do out[#out + 1] = found[i] end
end
`,
)
