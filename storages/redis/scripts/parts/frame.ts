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
local own, blind = ARGV[1], byte(ARGV[2]) == 98
if byte(ARGV[2], -1) == 101 then call('PUBLISH', own, 'e0:') end
`,
)
