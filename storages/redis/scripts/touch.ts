import { prelude } from './prelude.ts'

/** ARGV: 3.. id and ttlMs of each. Answers: a letter each: u updated, n not found, o not terminal, m missing payload. */
export const touch = /* lua */ `${prelude}
local letters = {}
call('DEL', KEYS[1])
for i = 3, #ARGV, 2 do
  local key, ms = rec .. ARGV[i], ARGV[i + 1]
  local v, letter = head(key), 'n'
  if v ~= '' and not gone(v) then
    local _, _, c = parts(v)
    if byte(v, 27) > 96 then
      letter = 'o'
    elseif byte(v, 27) ~= 69 and #v < c + 13 then
      letter = 'm'
    else
      letter = 'u'
      call('SETRANGE', key, 13, tostring(now + ms))
      call('PEXPIREAT', key, now + ms - 1)
    end
  end
  letters[#letters + 1] = letter
end
return table.concat(letters)
`
