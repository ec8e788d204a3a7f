import { part } from '../part.ts'
import { living } from './layout.ts'

/**
 * Running a record that has ended anew: writes `v` in its place, and beside that the result, until its own end. Answers `v`,
 * whether it keeps one, and when it is forgotten if it is inline (`last`, nil if it is not).
 */
export const renewing = part(
  'renew',
  [living],
  /* lua */ `
local function renew(id, v, last, ended)
  local state, keeps = sub(ended, 27, 27), false
  if state == 'C' or state == 'M' then
    local _, _, c = parts(ended)
    local good, from = tonumber(sub(ended, 14, 26)), c + 13
    if state == 'M' then from = from + 19 + sub(ended, c + 23, c + 31) end
    call('SET', base .. 'k:' .. id, good .. sub(ended, c, c + 12) .. sub(ended, from), 'PXAT', before(good))
    v, keeps = sub(v, 1, 27) .. string.char(byte(v, 28) + 2) .. sub(v, 29), true
    last = last and math.max(last, good)
  end
  call('SET', rec .. id, v, unpack(last and { 'PXAT', before(last) } or {}))
  return v, keeps, last
end
`,
)
