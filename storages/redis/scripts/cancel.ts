import { script } from './part.ts'
import { missing } from './parts/finishing.ts'

export const cancel = script('cancel', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 own channel or ''; 2 flags; 3.. ids
-- Answers: a letter each (d cancelled, p processing, C completed, X failed, n not found), then what the caller is told
`,
  uses: [missing],
  body: /* lua */ `
local function remove(id, v, state)
  call('ZREM', due, id)
  if state == 'f' and not inline(v) then call('SREM', fails, id) end
  if miss(id, v, nil, string.rep(' ', 24), nil, 'c', '000000000000000000', '') then return end
  if inline(v) then inlined(id, state) end
  call('DEL', rec .. id)
  local a, b, c = parts(v)
  if c > b then tell(sub(v, b, c - 1), 'c', id, sub(v, a, find(v, '\\n', a, true) - 1)) end
end
local letters = {}
for i = 3, #ARGV do
  local id = ARGV[i]
  local v, letter = head(rec .. id), 'n'
  if v ~= '' and not gone(id, v) then
    letter = sub(v, 27, 27)
    letter = ({ E = 'X', M = 'C' })[letter] or letter
    if letter == 'q' or letter == 'f' then
      remove(id, v, letter)
      letter = 'd'
    end
  end
  letters[#letters + 1] = letter
end
return answer({ table.concat(letters) })
`,
})
