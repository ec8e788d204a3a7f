import { part } from '../part.ts'
import { frame } from './frame.ts'

/** What a call makes claimable: gathered, put in the due set by one command, and told of. */
export const queueing = part(
  'queueing',
  [frame],
  /* lua */ `
local waiting, order, soonest = {}, 0, nil
local function dueIn(ms)
  if not soonest or ms < soonest then soonest = ms end
end
-- a quarter of a microsecond apart: due jobs come in the order of the call's items
local function queue(id, ms)
  local n = #waiting
  waiting[n + 1], waiting[n + 2], order = us + ms * 1000 + order / 4, id, order + 1
  dueIn(ms)
end
local function queued()
  if waiting[1] then call('ZADD', due, unpack(waiting)) end
  waiting = {}
end
`,
)
