import { prelude } from './prelude.ts'

/** ARGV: 1 own channel or ''. It wants to hear of work though it does not claim, for a minute. Answers: now. */
export const listen = /* lua */ `${prelude}
if own ~= '' and call('ZADD', idle, 'NX', math.floor(now / 1000), own) == 1 and call('PTTL', idle) < 60000 then
  call('PEXPIRE', idle, 60000)
end
return now
`
