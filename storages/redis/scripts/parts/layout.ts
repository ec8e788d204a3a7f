import { part } from '../part.ts'
import { frame } from './frame.ts'

/**
 * A record is one string: 1-13 createdAt, 14-26 at, 27 state (q p f, ended: C X E, M refreshed in vain), 28 flags (1 inline, 2
 * something is beside it), 29-35 attempts, 36-42 maxAttempts, 43-45 length of the generation, 46-49 of the spec, 50-53 of the
 * channels; then these three, then the body. Body: q p payload; f lengths of the error (UTF-16 units 9, bytes 9), error,
 * payload; C X E settledAt 13, outcome; M settledAt 13, reason (e x c), lengths of the error as above, error, result.
 * Beside an open record, under `k:<id>`, is the result that it keeps: until 13, settledAt 13, result; beside a completed one,
 * under `o:<id>`, its outbox: until 13, at 13, attempts 7, length of the generation 3, of the rows (UTF-16 units 9), these two.
 */
export const layout = part(
  'layout',
  [frame],
  /* lua */ `
local key53, sl, pl, cl
-- where spec, channels and body of a record start
local function parts(v)
  local k = sub(v, 43, 53)
  if k ~= key53 then
    key53, sl, pl, cl = k, tonumber(sub(k, 1, 3)), tonumber(sub(k, 4, 7)), tonumber(sub(k, 8, 11))
  end
  return 54 + sl, 54 + sl + pl, 54 + sl + pl + cl
end
local function generation(v) return sub(v, 54, parts(v) - 1) end
-- the spec is incarnation, fingerprint, resultTTL, failureTTL; a line each
local function resultTTL(v) return tonumber(string.match(v, '^[^\\n]*\\n[^\\n]*\\n(%d+)', (parts(v)))) end
local function failureTTL(v) return tonumber(string.match(v, '^[^\\n]*\\n[^\\n]*\\n%d+\\n(%d+)', (parts(v)))) end
-- all of a record but the body, and a little more; '' if there is none
local function head(key)
  local v = call('GETRANGE', key, 0, 1023)
  if #v == 1024 then
    local _, _, c = parts(v)
    if c > 1024 then v = call('GETRANGE', key, 0, c + 32) end
  end
  return v
end
`,
)

/** How long a record lives, and what may be beside it. */
export const living = part(
  'living',
  [layout],
  /* lua */ `
local function inline(v) return byte(v, 28) % 2 == 1 end
-- until when what is beside a record keeps it, or 0
local function beside(id, v)
  if byte(v, 28) < 50 then return 0 end
  return tonumber(call('GETRANGE', base .. (byte(v, 27) > 96 and 'k:' or 'o:') .. id, 0, 12)) or 0
end
-- when an inline record or one that has ended is forgotten, if it is at \`at\` then
local function ends(id, v, at)
  return math.max(byte(v, 27) > 96 and at + resultTTL(v) or at, beside(id, v))
end
-- whether the record is past its end: Redis drops it within the millisecond, this is exact
local function gone(id, v)
  local flags = byte(v, 28)
  if flags == 48 then return byte(v, 27) < 97 and tonumber(sub(v, 14, 26)) <= now end
  if byte(v, 27) > 96 and flags % 2 == 0 then return false end
  return ends(id, v, tonumber(sub(v, 14, 26))) <= now
end
`,
)
