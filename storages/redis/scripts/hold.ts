import { script } from './part.ts'
import { waking } from './parts/telling.ts'

export const hold = script('hold', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 own channel or ''; 2 flags; 3 ms, 0 to end every hold: all idle workers hear of that
-- Answers: now, then what the caller is told
`,
  uses: [waking],
  body: /* lua */ `
local key, ms = base .. 'h', tonumber(ARGV[3])
if ms > 0 then
  local ends = math.max(now + ms, heldTill())
  call('SET', key, tostring(ends), 'PXAT', ends)
elseif call('DEL', key) == 1 then
  while call('EXISTS', idle) == 1 do wake() end
end
return answer({ now })
`,
})
