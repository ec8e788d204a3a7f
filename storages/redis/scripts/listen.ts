import { script } from './part.ts'
import { frame } from './parts/frame.ts'

export const listen = script('listen', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 own channel or '': it wants to hear of work though it does not claim, for a minute; 2 flags
-- Answers: now
`,
  uses: [frame],
  body: /* lua */ `
if own ~= '' and call('ZADD', idle, 'NX', math.floor(now / 1000), own) == 1 and call('PTTL', idle) < 60000 then
  call('PEXPIRE', idle, 60000)
end
return now
`,
})
