import { script } from './part.ts'
import { living } from './parts/layout.ts'
import { posting } from './parts/posting.ts'

export const touch = script('touch', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 ''; 2 flags; 3.. id and ttlMs of each
-- Answers: a letter each: u updated, n not found, o not terminal, m missing payload
`,
  uses: [living, posting],
  body: /* lua */ `
local letters = {}
-- a write that needs no memory comes first: Redis then lets the others pass even at maxmemory
call('DEL', KEYS[1])
for i = 3, #ARGV, 2 do
  local id, key, ms = ARGV[i], rec .. ARGV[i], ARGV[i + 1]
  local v, letter = head(key), 'n'
  if v ~= '' and not gone(id, v) then
    local _, _, c = parts(v)
    if byte(v, 27) > 96 then
      letter = 'o'
    elseif byte(v, 27) ~= 69 and #v < c + 13 then
      letter = 'm'
    else
      letter = 'u'
      call('SETRANGE', key, 13, tostring(now + ms))
      local last = ends(id, v, now + ms)
      call('PEXPIREAT', key, before(last))
      if byte(v, 28) > 49 then keepBox(id, last) end
    end
  end
  letters[#letters + 1] = letter
end
return table.concat(letters)
`,
})
