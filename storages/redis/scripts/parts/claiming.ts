import { part } from '../part.ts'
import { layout } from './layout.ts'
import { leasing } from './leasing.ts'
import { waking } from './telling.ts'
import { handing } from './viewing.ts'

/** Looking for what is due: ids, oldest first; and, if there are any, which are leases that ran out. */
const searching = part(
  'searching',
  [layout],
  /* lua */ `
local function dueIds(limit)
  local top = now * 1000 + 999.75
  local late = call('ZRANGEBYSCORE', leases, '-inf', top, 'WITHSCORES', 'LIMIT', 0, limit)
  if not late[1] then return call('ZRANGEBYSCORE', due, '-inf', top, 'LIMIT', 0, limit) end
  local fresh = call('ZRANGEBYSCORE', due, '-inf', top, 'WITHSCORES', 'LIMIT', 0, limit)
  local ids, expired, i, j = {}, {}, 1, 1
  while #ids < limit and (late[i] or fresh[j]) do
    if not fresh[j] or (late[i] and tonumber(late[i + 1]) <= tonumber(fresh[j + 1])) then
      ids[#ids + 1], expired[late[i]], i = late[i], true, i + 2
    else
      ids[#ids + 1], j = fresh[j], j + 2
    end
  end
  return ids, expired
end
-- until the first record becomes due, ms; -1 if there is none
local function firstIn()
  local first = tonumber(call('ZRANGE', due, 0, 0, 'WITHSCORES')[2])
  local lease = tonumber(call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2])
  if lease and (not first or lease < first) then first = lease end
  return first and math.max(0, math.floor(first / 1000) - now) or -1
end
`,
)

/** Gives back what claims have leased whose answers were lost: it goes in front. `gens` has each between newlines. */
const abandoning = part(
  'abandoning',
  [layout],
  /* lua */ `
local function abandon(gens)
  local score = tonumber(call('ZRANGE', due, 0, 0, 'WITHSCORES')[2])
  score = math.min(us, score or us) - 1
  for _, id in ipairs(call('ZRANGE', leases, 0, -1)) do
    local v = head(rec .. id)
    local gen = v ~= '' and byte(v, 27) == 112 and generation(v)
    if gen and find(gens, '\\n' .. gen .. '\\n', 1, true) then
      call('ZREM', leases, id)
      call('SETRANGE', rec .. id, 13, now .. 'q' .. sub(v, 28, 28) .. fmt('%07d', sub(v, 29, 35) - 1))
      call('ZADD', due, score, id)
    end
  end
end
`,
)

/** Claims whatever is due: jobs, and what has failed by it (dead), as ids and records in turn; answers whether more is due. */
const claimingDue = part(
  'claimingDue',
  [searching, leasing, handing],
  /* lua */ `
local bytes, bytesMax, open = 0, 4194304, { [113] = true, [102] = true }
-- one round: as many as wanted
local function claimSome(gen, ms, wanted, jobs, dead)
  local ids, expired = dueIds(wanted + 1)
  local taken = 0
  for i = 1, math.min(#ids, wanted) do
    if bytes > bytesMax then break end
    local id = ids[i]
    local late = expired and expired[id]
    local v = call('GET', rec .. id)
    if not late then taken = taken + 1 end
    local flags = v and byte(v, 28)
    if v and flags % 2 == 0 and (late and byte(v, 27) == 112 or open[byte(v, 27)]) then
      local job, ended = lease(id, v, gen, ms)
      -- this very claim again, after its leases ended: "as before" would look as if they had not
      if job and late and generation(v) == gen then job = call('GET', rec .. id) end
      local list, n = job and jobs or dead, job and #jobs or #dead
      if job and flags > 49 then job = forHolder(id, job) end
      list[n + 1], list[n + 2] = id, job or ended
      bytes = bytes + #v
    elseif late then
      drops[#drops + 1] = id
    end
  end
  if taken > 0 then call('ZREMRANGEBYRANK', due, 0, taken - 1) end
  leased()
  return #ids > wanted or bytes > bytesMax
end
-- records that have just failed, or are gone, must not hide those behind them
local function claimDue(gen, ms, limit, jobs, dead)
  local more
  repeat
    more = claimSome(gen, ms, limit - #jobs / 2, jobs, dead)
  until not more or #jobs >= limit * 2 or #dead >= 2000 or bytes > bytesMax
  return more
end
`,
)

/** Claims the ids in ARGV `from` on; those that carry the generation already are answered as they are. */
const claimingThese = part(
  'claimingThese',
  [leasing, waking, handing],
  /* lua */ `
local function claimThese(gen, ms, limit, from, jobs, dead)
  for i = from, #ARGV do
    if #jobs >= limit * 2 then break end
    local id = ARGV[i]
    local v = call('GET', rec .. id)
    if v and byte(v, 27) > 96 and not gone(id, v) then
      local job, ended
      if byte(v, 27) == 112 and generation(v) == gen then
        job = v
      elseif not held() and tonumber(sub(v, 14, 26)) <= now then
        if not inline(v) then call('ZREM', due, id) end
        job, ended = lease(id, v, gen, ms)
      end
      local list = job and jobs or dead
      if job or ended then list[#list + 1] = id list[#list + 1] = job and forHolder(id, job) or ended end
    end
  end
  leased()
end
`,
)

/**
 * `claim(from, out)` reads ARGV from..: generation; leaseMs; limit; generations of claims whose answers were lost, each
 * between newlines; ids (none: whatever is due). Appends to out: ms held; ms to the next due record or -1; jobs (how many,
 * then id and record each); exhausted (the same). Jobs are as before the lease, unless they carry its generation already.
 */
export const claiming = part(
  'claim',
  [abandoning, claimingDue, claimingThese],
  /* lua */ `
-- keeps the list of idle workers: who got less than it could take is on it; who leaves work behind calls the next
local function idling(full, more)
  if not full and not more then
    if own ~= '' then
      call('ZADD', idle, us + 3000000, own)
      call('PEXPIRE', idle, 3000)
    end
  elseif call('EXISTS', idle) == 1 then
    if own ~= '' then call('ZREM', idle, own) end
    if more then wake() end
  end
end
local function claim(from, out)
  local gen, ms, limit = ARGV[from], tonumber(ARGV[from + 1]), tonumber(ARGV[from + 2])
  local jobs, dead, ids, more = {}, {}, ARGV[from + 4], false
  if ids then
    claimThese(gen, ms, limit, from + 4, jobs, dead)
  else
    if ARGV[from + 3] ~= '' then abandon(ARGV[from + 3]) end
    more = not held() and claimDue(gen, ms, limit, jobs, dead)
    idling(#jobs >= limit * 2, more)
  end
  -- who got all it asked for will ask again before it wants to know
  local known = more and 0 or not ids and #jobs >= limit * 2 and -1
  out[#out + 1] = math.max(0, heldTill() - now)
  out[#out + 1] = known or firstIn()
  for _, list in ipairs({ jobs, dead }) do
    out[#out + 1] = #list / 2
    for i = 1, #list do out[#out + 1] = list[i] end
  end
end
`,
)
