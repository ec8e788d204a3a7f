/**
 * What the scripts share. A script's text is the prelude, the parts it names, and its own body; Redis keeps it compiled.
 *
 * Every script is called with two keys: `{tag}`, which never exists, and `{tag}:d`. The first is what makes a script wait
 * (ASK, TRYAGAIN) while a Cluster moves its slot, instead of working on one half of the records: see the ADR 0201.
 *
 * @module
 */

/**
 * KEYS: 1 never exists, 2 the due set. ARGV: 1 own channel or ''; 2 flags: b PUBLISH can't tell who listens (Cluster), e the
 * channel asks for an echo.
 *
 * A record is one string: 1-13 createdAt, 14-26 at, 27 state (q p f, ended: C X E), 28 inline, 29-35 attempts, 36-42
 * maxAttempts, 43-45 length of the generation, 46-49 of the spec, 50-53 of the channels; then these three, then the body.
 * Body: q p payload; f lengths of the error (UTF-16 units 9, bytes 9), error, payload; ended: settledAt 13, outcome.
 */
export const prelude = /* lua */ `
local call, sub, byte, fmt = redis.call, string.sub, string.byte, string.format
local T = call('TIME')
local us = T[1] * 1000000 + T[2]
local now = (us - us % 1000) / 1000
local base, due = KEYS[1] .. ':', KEYS[2]
local rec, leases, fails, idle = base .. 'r:', base .. 'l', base .. 'f', base .. 'i'
local own, blind = ARGV[1], byte(ARGV[2]) == 98
if byte(ARGV[2], -1) == 101 then call('PUBLISH', own, 'e0:') end
local key53, sl, pl, cl
-- where spec, channels and body of a record start
local function parts(v)
  local k = sub(v, 43, 53)
  if k ~= key53 then
    key53, sl, pl, cl = k, tonumber(sub(k, 1, 3)), tonumber(sub(k, 4, 7)), tonumber(sub(k, 8, 11))
  end
  return 54 + sl, 54 + sl + pl, 54 + sl + pl + cl
end
-- incarnation, fingerprint, resultTTL, failureTTL
local function spec(v, from)
  return string.match(v, '^([^\\n]*)\\n([^\\n]*)\\n(%d+)\\n(%d+)', from or (parts(v)))
end
local function resultTTL(v) local _, _, ttl = spec(v) return tonumber(ttl) end
local function failureTTL(v) local _, _, _, ttl = spec(v) return tonumber(ttl) end
-- whether the record is past its end: Redis drops it within the millisecond, this is exact
local function gone(v)
  if byte(v, 27) > 96 then return byte(v, 28) == 49 and sub(v, 14, 26) + resultTTL(v) <= now end
  return tonumber(sub(v, 14, 26)) <= now
end
-- all of a record but the body, and a little more; '' if there is none
local function head(key)
  local v = call('GETRANGE', key, 0, 1023)
  if #v == 1024 then
    local _, _, c = parts(v)
    if c > 1024 then v = call('GETRANGE', key, 0, c + 18) end
  end
  return v
end
`

/** Inline records: they end by themselves, and are counted apart, a set for each state (was, is: p q f, or nil). */
export const inlining = /* lua */ `
local function inlined(id, was, is, ends)
  if was and was ~= is then call('ZREM', base .. 'n' .. was, id) end
  if not is then return end
  local key = base .. 'n' .. is
  call('PEXPIREAT', rec .. id, ends - 1)
  call('ZREMRANGEBYSCORE', key, '-inf', now)
  call('ZADD', key, ends, id)
  if call('PTTL', key) < ends - now then call('PEXPIREAT', key, ends) end
end
`

/** Telling waiters and idle workers. `mine`: what the caller would have been told, as kind, id, text. */
export const telling = /* lua */ `
local mine, till = {}, nil
local function add(list, kind, id, text)
  local n = #list
  list[n + 1], list[n + 2], list[n + 3] = kind, id, text
end
local function tell(channels, kind, id, text)
  if #text > 65536 then text = '' end
  local message
  for channel in string.gmatch(channels, '%S+') do
    if channel == own then
      add(mine, kind, id, text)
    else
      message = message or (kind .. #id .. ':' .. id .. text)
      call('PUBLISH', channel, message)
    end
  end
end
local function held()
  till = till or tonumber(call('GET', base .. 'h') or 0)
  return till > now
end
local function hintDue(channel, soon)
  if channel ~= own then return call('PUBLISH', channel, 'd0:' .. soon) > 0 or blind end
  add(mine, 'd', '', tostring(soon))
  return true
end
-- one idle worker hears that there is work: the one that asked last; dead ones are passed over. Where no worker is idle,
-- those hear it that only listen (their score is no time): they come back to the list after a while
local function wake()
  for _ = 1, 16 do
    local top = call('ZPOPMAX', idle)
    if not top[1] then return end
    local score = tonumber(top[2])
    if (score < 1e11 or score > us) and hintDue(top[1], 0) and score > 1e11 then return end
  end
end
-- the same for records that become due in \`soon\` ms: a worker that hears it stays on the list
local function announce(soon)
  if soon == 0 then return held() or wake() end
  local top = call('ZREVRANGE', idle, 0, 15, 'WITHSCORES')
  for i = 1, #top, 2 do
    hintDue(top[i], soon)
    if tonumber(top[i + 1]) > 1e11 then return end
    call('ZREM', idle, top[i])
  end
end
local function answer(out)
  for i = 1, #mine do out[#out + 1] = mine[i] end
  return out
end
`

/** Ending a record: it lives on for \`ttl\` ms by its key's own expiry. Answers the record. */
export const finishing = /* lua */ `
local function finish(id, v, state, attempts, gen, ttl, outcome)
  local at = now + ttl
  local a, b, c = parts(v)
  local ended = sub(v, 1, 13) .. at .. state .. '0' .. attempts .. sub(v, 36, 42) .. fmt('%03d', #gen)
    .. sub(v, 46, 49) .. '0000' .. gen .. sub(v, a, b - 1) .. now .. outcome
  call('SET', rec .. id, ended, 'PXAT', at - 1)
  if byte(v, 28) == 49 then inlined(id, sub(v, 27, 27)) end
  if c > b then tell(sub(v, b, c - 1), 's', id, ended) end
  return ended
end
`

/**
 * Leasing one due record, given whole: \`take(id, v, gen, ms)\` answers the record as it was (the caller knows what a lease
 * changes) or as it is, or false and the failed record if its attempts were used up. \`leased()\` must follow.
 */
export const taking = /* lua */ `
local adds, drops = {}, {}
local function take(id, v, gen, ms)
  local attempts, inline, state = sub(v, 29, 35), byte(v, 28) == 49, byte(v, 27)
  if state == 102 and not inline then call('SREM', fails, id) end
  if attempts >= sub(v, 36, 42) then
    drops[#drops + 1] = id
    return false, finish(id, v, 'E', attempts, string.rep(' ', #gen), failureTTL(v), '')
  end
  attempts = attempts == '0000000' and '0000001' or fmt('%07d', attempts + 1)
  local a, b, c = parts(v)
  local front = (now + ms) .. 'p' .. sub(v, 28, 28) .. attempts .. sub(v, 36, 42)
  if a - 54 == #gen and state ~= 102 then
    call('SETRANGE', rec .. id, 13, front .. sub(v, 43, 53) .. gen)
  else
    if state == 102 then c = c + 18 + sub(v, c + 9, c + 17) end
    v = sub(v, 1, 13) .. front .. fmt('%03d', #gen) .. sub(v, 46, 53) .. gen .. sub(v, a, b + cl - 1) .. sub(v, c)
    call('SET', rec .. id, v)
  end
  if inline then
    inlined(id, string.char(state), 'p', now + ms + resultTTL(v))
  else
    local n = #adds
    adds[n + 1], adds[n + 2] = us + ms * 1000 + n / 8, id
  end
  return v
end
local function leased()
  if drops[1] then call('ZREM', leases, unpack(drops)) end
  if adds[1] then call('ZADD', leases, unpack(adds)) end
  adds, drops = {}, {}
end
`

/** What a caller who holds no lease may see: ended records whole, open ones without their payload. */
export const viewing = /* lua */ `
local function view(key, v)
  local state = byte(v, 27)
  if state < 97 then return #v < 1024 and v or call('GET', key) end
  local _, _, c = parts(v)
  if state == 102 then
    local bytes = tonumber(sub(v, c + 9, c + 17))
    return call('GETRANGE', key, 0, c + 16 + bytes)
  end
  return sub(v, 1, c - 1)
end
`
