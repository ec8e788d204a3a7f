import { script } from './part.ts'
import { frame } from './parts/frame.ts'

export const retire = script('retire', {
  header: `
-- KEYS: 1 never exists; 2 the due set
-- ARGV: 1 own channel: it is idle no more, its handle closes; 2 flags
-- Answers: on how many lists it was
`,
  uses: [frame],
  body: /* lua */ `
return call('ZREM', idle, own) + call('ZREM', base .. 'w', own)
`,
})
