import { part } from '../part.ts'

/** What every script begins with: the time, the names of keys, and the caller. */
export const frame = part(
  'frame',
  [],
  /* lua */ `
local call, sub, byte, find, fmt = redis.call, string.sub, string.byte, string.find, string.format
local T = call('TIME')
local us = T[1] * 1000000 + T[2]
local now = (us - us % 1000) / 1000
local base, due = KEYS[1] .. ':', KEYS[2]
local rec, leases, fails, idle = base .. 'r:', base .. 'l', base .. 'f', base .. 'i'
-- PXAT of a key that is gone from ms on. A time that is not ahead would end it at once: its last ms is longer by one then,
-- and the record's own time decides
local function before(ms) return math.max(ms - 1, now + 1) end
local own, blind = ARGV[1], byte(ARGV[2]) == 98
if byte(ARGV[2], -1) == 101 then call('PUBLISH', own, 'e0:') end
`,
)
