import { part } from '../part.ts'
import { layout } from './layout.ts'
import { holding } from './telling.ts'

/** Making the record of an item, unless there is one. */
export const creating = part(
  'creating',
  [layout, holding],
  /* lua */ `
local moment = tostring(now)
-- the record that an item makes, its letter, and when it is forgotten if it is inline
local function new(rest, at, ms)
  if ms == 0 then return (at == now and moment .. moment or moment .. at) .. rest, 'c' end
  local letter = 'l'
  if held() then
    local gen = tonumber(sub(rest, 17, 19))
    rest = 'q10000000' .. sub(rest, 10, 27) .. string.rep(' ', gen) .. sub(rest, 28 + gen)
    letter, at = 'H', math.max(at, heldTill())
  else
    at = now + ms
  end
  local v = moment .. at .. rest
  return v, letter, at + resultTTL(v)
end
local function put(key, v, last)
  if last then return call('SET', key, v, 'NX', 'PXAT', before(last)) end
  return call('SET', key, v, 'NX')
end
local function terms(text)
  if text == '' then return now, false, false, 0, false end
  local delay, reject, wait, ms, fresh = string.match(text, '(%d+) (%d) (%d) (%d+) (%d)')
  return now + delay, reject == '1', wait == '1', tonumber(ms), fresh == '1'
end
`,
)
