import { prelude, viewing } from './prelude.ts'

/** ARGV: 3.. ids. Answers: now, then each record or ''. */
export const get = /* lua */ `${prelude}${viewing}
local out = { now }
for i = 3, #ARGV do
  local key = rec .. ARGV[i]
  local v = head(key)
  out[i - 1] = v ~= '' and not gone(v) and view(key, v) or ''
end
return out
`
