/**
 * A part of `enqueue`: the item's id has a living record `v`. `meet` answers the item's letter and the record to show.
 *
 * `rest` is the record that the item would have made, from its state on; `ms` the lease asked for, 0 for none.
 */
export const meeting = /* lua */ `
local soon -- until the first record that this call makes claimable, ms
local undue = {}
-- an inline record that somebody counts on without running it: workers must see it, should its runner die
local function outline(id, key, v)
  local state, at = byte(v, 27), tonumber(sub(v, 14, 26))
  call('SETRANGE', key, 27, '0')
  call('PERSIST', key)
  inlined(id, string.char(state))
  if state == 102 then call('SADD', fails, id) end
  if state == 112 then call('ZADD', leases, at * 1000, id) return end
  call('ZADD', due, at * 1000, id)
  soon = math.min(soon or at, math.max(0, at - now))
end
local function await(key, v)
  local _, b, c = parts(v)
  local channels = sub(v, b, c - 1)
  if #channels > 4000 or string.find(channels, own, 1, true) then return v end
  if channels ~= '' then channels = channels .. ' ' end
  v = call('GET', key)
  call('SET', key, sub(v, 1, 49) .. fmt('%04d', #channels + #own) .. sub(v, 54, b - 1) .. channels .. own .. sub(v, c),
    'KEEPTTL')
  return head(key)
end
local function meet(id, key, v, rest, reject, wait, ms)
  local a = parts(v)
  local inc, fp = spec(v, a)
  local slot = 27 + sub(rest, 17, 19)
  local inc2, fp2 = spec(rest, slot + 1)
  local open, gen = byte(v, 27) > 96, sub(rest, 28, slot)
  local have = ms > 0 and byte(v, 27) == 112 and sub(v, 54, a - 1) == gen
  if inc == inc2 then return have and 'L' or 'C', have and call('GET', key) or view(key, v) end
  local other = fp ~= fp2 and fp ~= '' and fp2 ~= ''
  if not open or (other and reject) then return other and 'M' or 'E', view(key, v) end
  if ms > 0 and not have and tonumber(sub(v, 14, 26)) <= now and not held() then
    if byte(v, 28) == 48 then undue[#undue + 1] = id end
    local ended
    have, ended = take(id, call('GET', key), gen, ms)
    if ended then return other and 'M' or 'E', ended end
  elseif ms == 0 and byte(v, 28) == 49 then
    outline(id, key, v)
    v = head(key)
  end
  if wait then v = await(key, v) end
  if have then return other and 'G' or 'F', call('GET', key) end
  return other and 'M' or 'E', view(key, v)
end
`
