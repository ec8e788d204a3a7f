import { script } from './part.ts'
import { living } from './parts/layout.ts'

export const mark = script('mark', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 ''; 2 flags; 3 characters that all marks of a record may have; 4.. id, name and token of each
-- Answers: a letter each: m marked, t taken, u full, n not found
`,
  uses: [living],
  body: /* lua */ `
-- the marks follow the spec's four lines, each as a line feed, name=token; mark: the new one
local function add(id, v, name, mark, max)
  local a, b = parts(v)
  local spec = sub(v, a, b - 1)
  local _, last = find(spec, '^[^\\n]*\\n[^\\n]*\\n%d+\\n%d+')
  local marks = sub(spec, last + 1)
  if find(marks, '\\n' .. name .. '=', 1, true) then return find(marks .. '\\n', mark .. '\\n', 1, true) and 'm' or 't' end
  if #marks + #mark > max then return 'u' end
  v = call('GET', rec .. id)
  call('SET', rec .. id, sub(v, 1, 45) .. fmt('%04d', #spec + #mark) .. sub(v, 50, b - 1) .. mark .. sub(v, b), 'KEEPTTL')
  return 'm'
end
local letters = {}
for i = 4, #ARGV, 3 do
  local id, name = ARGV[i], ARGV[i + 1]
  local v = head(rec .. id)
  local alive = v ~= '' and not gone(id, v)
  letters[#letters + 1] = alive and add(id, v, name, '\\n' .. name .. '=' .. ARGV[i + 2], tonumber(ARGV[3])) or 'n'
end
return table.concat(letters)
`,
})
