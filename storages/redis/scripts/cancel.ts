import { inlining, prelude, telling } from './prelude.ts'

/** ARGV: 3.. ids. Answers: a letter each (d cancelled, p processing, C completed, X failed, n not found), then `mine`. */
export const cancel = /* lua */ `${prelude}${inlining}${telling}
local letters, out = {}, { '' }
for i = 3, #ARGV do
  local id = ARGV[i]
  local v, letter = head(rec .. id), 'n'
  if v ~= '' and not gone(v) then
    letter = sub(v, 27, 27)
    if letter == 'E' then letter = 'X' end
    if letter == 'q' or letter == 'f' then
      if byte(v, 28) == 49 then inlined(id, letter) elseif letter == 'f' then call('SREM', fails, id) end
      letter = 'd'
      call('DEL', rec .. id)
      call('ZREM', due, id)
      local a, b, c = parts(v)
      if c > b then tell(sub(v, b, c - 1), 'c', id, (spec(v, a))) end
    end
  end
  letters[#letters + 1] = letter
end
out[1] = table.concat(letters)
return answer(out)
`
