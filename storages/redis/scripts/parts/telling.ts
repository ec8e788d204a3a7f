import { lazily, part } from '../part.ts'
import { frame } from './frame.ts'

/** Telling those who wait for an id. What the caller itself would have been told goes in its answer, as kind, id, text. */
export const telling = part(
  'telling',
  [frame],
  /* lua */ `
local mine = {}
local function tellOwn(kind, id, text)
  local n = #mine
  mine[n + 1], mine[n + 2], mine[n + 3] = kind, id, text
end
local function tell(channels, kind, id, text)
  if #text > 65536 then text = '' end
  local message
  for channel in string.gmatch(channels, '%S+') do
    if channel == own then
      tellOwn(kind, id, text)
    else
      message = message or (kind .. #id .. ':' .. id .. text)
      call('PUBLISH', channel, message)
    end
  end
end
local function answer(out)
  for i = 1, #mine do out[#out + 1] = mine[i] end
  return out
end
`,
)

/** The queue's hold: while it lasts, nothing is leased and nobody is woken. */
export const holding = part(
  'holding',
  [frame],
  /* lua */ `
local till
local function heldTill()
  till = till or tonumber(call('GET', base .. 'h') or 0)
  return till
end
local function held() return heldTill() > now end
`,
)

/** Telling idle workers of work: one at a time, the one that asked last; dead ones are passed over. */
export const waking = part(
  'waking',
  [telling, holding],
  /* lua */ `
local function hintDue(channel, soon)
  if channel ~= own then return call('PUBLISH', channel, 'd0:' .. soon) > 0 or blind end
  tellOwn('d', '', tostring(soon))
  return true
end
-- where no worker is idle, those hear it that only listen (their score is no time): they come back to the list after a while
local function wake()
  for _ = 1, 16 do
    local top = call('ZPOPMAX', idle)
    if not top[1] then return end
    local score = tonumber(top[2])
    if (score < 1e11 or score > us) and hintDue(top[1], 0) and score > 1e11 then return end
  end
end
`,
)

/** What {@link announcing} is. */
const announcement = part(
  'announce',
  [waking],
  /* lua */ `
-- as \`wake\`, for records that become due in \`soon\` ms: a worker that hears it stays on the list
local function announce(soon)
  if soon == 0 then return held() or wake() end
  local top = call('ZREVRANGE', idle, 0, 15, 'WITHSCORES')
  for i = 1, #top, 2 do
    hintDue(top[i], soon)
    if tonumber(top[i + 1]) > 1e11 then return end
    call('ZREM', idle, top[i])
  end
end
`,
)

/** {@link waking} for records that become due later, too; few calls come to it. */
export const announcing = lazily(announcement, [telling, holding])
