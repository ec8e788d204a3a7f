import { prelude, telling } from './prelude.ts'

/** ARGV: 3 ms, 0 to end every hold. All idle workers hear that a hold has ended. Answers: now, then \`mine\`. */
export const hold = /* lua */ `${prelude}${telling}
local key, ms = base .. 'h', tonumber(ARGV[3])
if ms > 0 then
  local ends = math.max(now + ms, tonumber(call('GET', key) or 0))
  call('SET', key, tostring(ends), 'PXAT', ends)
elseif call('DEL', key) == 1 then
  while call('EXISTS', idle) == 1 do wake() end
end
return answer({ now })
`
