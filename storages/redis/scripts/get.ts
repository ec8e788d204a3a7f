import { script } from './part.ts'
import { viewing } from './parts/viewing.ts'

export const get = script('get', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 own channel or ''; 2 flags; 3.. ids
-- Answers: now, then each record or ''
`,
  uses: [viewing],
  body: /* lua */ `
local out = { now }
for i = 3, #ARGV do
  local id = ARGV[i]
  local v = head(rec .. id)
  out[i - 1] = v ~= '' and not gone(id, v) and view(id, v) or ''
end
return out
`,
})
