import { lazily, part } from '../part.ts'
import { frame } from './frame.ts'
import { telling } from './telling.ts'

/** Outboxes: `o:<id>` each, and the set `o` of those that have one, by when the next delivery may start. */
export const posting = part(
  'posting',
  [frame],
  /* lua */ `
local boxes, posted = base .. 'o', 0
local function boxIn(id, ms)
  call('ZADD', boxes, us + ms * 1000 + posted / 4, id)
  posted = posted + 1
end
-- keeps an outbox, and the set, as long as its record
local function keepBox(id, last)
  call('PEXPIREAT', boxes .. ':' .. id, before(last))
  if call('PTTL', boxes) < last - now then call('PEXPIREAT', boxes, last) end
end
`,
)

/** An outbox is made: few results have one. */
export const post = lazily(
  part(
    'post',
    [posting],
    /* lua */ `
local function post(id, box, last)
  call('SET', boxes .. ':' .. id, box)
  boxIn(id, 0)
  keepBox(id, last)
end
`,
  ),
  [frame],
)

/** Relays hear of outboxes that may be delivered in `soon` ms, and so do those who only listen. */
export const relaying = lazily(
  part(
    'tellRelays',
    [telling],
    /* lua */ `
local function tellRelays(soon)
  local function each(channels)
    for _, channel in ipairs(channels) do
      if channel == own then tellOwn('o', '', tostring(soon)) else call('PUBLISH', channel, 'o0:' .. soon) end
    end
  end
  each(call('ZREVRANGEBYSCORE', base .. 'w', '+inf', us, 'LIMIT', 0, 16))
  each(call('ZRANGEBYSCORE', idle, '-inf', 1e11, 'LIMIT', 0, 16))
end
`,
  ),
  [telling],
)

/** For three seconds the caller hears of outboxes. */
export const listening = part(
  'listening',
  [frame],
  /* lua */ `
local function listenForBoxes()
  if own == '' then return end
  local relays = base .. 'w'
  call('ZREMRANGEBYSCORE', relays, '-inf', us)
  call('ZADD', relays, us + 3000000, own)
  call('PEXPIRE', relays, 3000)
end
`,
)
