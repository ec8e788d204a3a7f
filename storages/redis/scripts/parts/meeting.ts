import { lazily, part } from '../part.ts'
import { layout } from './layout.ts'
import { leasing } from './leasing.ts'
import { queueing } from './queueing.ts'
import { holding } from './telling.ts'
import { handing, viewing } from './viewing.ts'

/** An inline record that somebody counts on without running it: workers must see it, should its runner die. */
const outlining = part(
  'outlining',
  [leasing, queueing],
  /* lua */ `
local function outline(id, key, v)
  local state, at = sub(v, 27, 27), tonumber(sub(v, 14, 26))
  call('SETRANGE', key, 27, string.char(byte(v, 28) - 1))
  call('PERSIST', key)
  inlined(id, state)
  if state == 'p' then return call('ZADD', leases, at * 1000, id) end
  if state == 'f' then call('SADD', fails, id) end
  call('ZADD', due, at * 1000, id)
  dueIn(math.max(0, at - now))
end
`,
)

/** Writes the caller's channel into a record, to be told of its end; answers the record. */
const awaiting = part(
  'awaiting',
  [layout],
  /* lua */ `
local function await(key, v)
  local _, b, c = parts(v)
  local channels = sub(v, b, c - 1)
  if #channels > 4000 or find(channels, own, 1, true) then return v end
  if channels ~= '' then channels = channels .. ' ' end
  v = call('GET', key)
  call('SET', key, sub(v, 1, 49) .. fmt('%04d', #channels + #own) .. sub(v, 54, b - 1) .. channels .. own .. sub(v, c),
    'KEEPTTL')
  return head(key)
end
`,
)

/** Takes part in an open record that was made by another: leases it if that is asked for and it is due, or counts on it. */
const joining = part(
  'join',
  [outlining, awaiting],
  /* lua */ `
-- answers whether it is leased now, and the record; or false and the record that has failed by it
local function join(id, key, v, gen, ms, wait)
  local got = false
  if ms > 0 and tonumber(sub(v, 14, 26)) <= now and not held() then
    -- it may have been made by this very call
    queued()
    if not inline(v) then call('ZREM', due, id) end
    local ended
    got, ended = lease(id, call('GET', key), gen, ms)
    leased()
    if ended then return false, ended end
    got, v = true, head(key)
  elseif ms == 0 and inline(v) then
    outline(id, key, v)
    v = head(key)
  end
  return got, wait and await(key, v) or v
end
`,
)

/**
 * An item that is enqueued has a living record `v`: `meet` answers the item's letter and the record to show; or neither, but
 * the ended record that it is to be run anew of. `rest` is the record that the item would have made, from its state on; `ms`
 * the lease asked for, 0 for none; `fresh`: what has ended is not enough.
 */
export const meeting = part(
  'meeting',
  [viewing, handing, queueing, lazily(joining, [viewing, queueing, holding])],
  /* lua */ `
-- generation, incarnation and fingerprint of a record that was not made, a newline behind one and on both sides of the other
local function offered(rest)
  local slot = 27 + sub(rest, 17, 19)
  local i = find(rest, '\\n', slot + 1, true)
  return sub(rest, 28, slot), sub(rest, slot + 1, i), sub(rest, i, find(rest, '\\n', i + 1, true))
end
local function meet(id, v, rest, reject, wait, ms, fresh)
  local key, gen, inc, fp = rec .. id, offered(rest)
  local from, open = parts(v), byte(v, 27) > 96
  local has = ms > 0 and byte(v, 27) == 112 and sub(v, 54, from - 1) == gen
  if find(v, inc, from, true) == from then
    return has and 'L' or 'C', has and forHolder(id, call('GET', key)) or view(id, v)
  end
  from = find(v, '\\n', from, true)
  -- '' on either side tells of no difference
  local other = fp ~= '\\n\\n' and find(v, fp, from, true) ~= from and byte(v, from + 1) ~= 10
  local letter = other and 'M' or 'E'
  if other and reject then return letter, view(id, v) end
  if not open and fresh and byte(v, 28) < 50 then return nil, nil, #v < 1024 and v or call('GET', key) end
  if not open or (not has and not fresh and beside(id, v) > now) then return letter, view(id, v) end
  if has then ms = -1 end
  local got
  if wait or ms > 0 or (ms == 0 and inline(v)) then
    got, v = join(id, key, v, gen, ms, wait)
    if fresh and byte(v, 27) < 97 then return nil, nil, v end
  end
  if has or got then return other and 'G' or 'F', forHolder(id, call('GET', key)) end
  return letter, view(id, v)
end
`,
)
