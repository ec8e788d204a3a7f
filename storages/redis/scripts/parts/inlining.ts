import { lazily, part } from '../part.ts'
import { frame } from './frame.ts'

/** Inline records: they end by themselves, and are counted apart, a set for each state (was, is: p q f, or nil). */
export const inlining = lazily(
  part(
    'inlined',
    [frame],
    /* lua */ `
local function inlined(id, was, is, ends)
  if was and was ~= is then call('ZREM', base .. 'n' .. was, id) end
  if not is then return end
  local key = base .. 'n' .. is
  call('PEXPIREAT', rec .. id, before(ends))
  call('ZREMRANGEBYSCORE', key, '-inf', now)
  call('ZADD', key, ends, id)
  if call('PTTL', key) < ends - now then call('PEXPIREAT', key, ends) end
end
`,
  ),
  [frame],
)
