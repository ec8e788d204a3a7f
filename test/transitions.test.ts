import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { living, step } from '../src/machine.ts'
import type { JobRecord, JobSpec } from '../src/record.ts'
import { isTerminal } from '../src/record.ts'
import type { CommandName, Situation, Transition } from '../src/transitions.ts'
import { applicable, endings, holds, nameOf, transitions } from '../src/transitions.ts'
import { changed, commands, reachable, spaceNow } from './support/machine-space.ts'

const page = new URL('../docs/state-machine.md', import.meta.url)
const situations: readonly Situation[] = ['absent', 'queued', 'processing', 'failing', 'completed', 'failed']

t.test('every reachable state and command is one row, and the machine does what it says', async (t) => {
  const used = new Map<Transition, number>()
  let steps = 0
  for (const stored of reachable()) {
    for (const command of commands) {
      const rows = applicable(stored, command, spaceNow)
      const what = () => `${nameOf(command)} on ${JSON.stringify(stored)}: ${JSON.stringify(command)}`
      if (rows.length !== 1) return t.fail(`${rows.length} rows apply to ${what()}: ${JSON.stringify(rows)}`)
      const row = rows[0]!
      const { record, answer } = step(stored, command, spaceNow)
      const told = typeof answer === 'string' ? answer : `${answer.outcome}${answer.leased ? ', leased' : ''}`
      const done = {
        to: record?.state ?? 'absent',
        // A sweep of what is past its end changes nothing that counts.
        changes: changed(stored, record) || told === 'forgotten',
        answer: told,
      }
      if (done.to !== row.to || done.changes !== row.changes || done.answer !== row.answer) {
        return t.same(done, row, what())
      }
      used.set(row, (used.get(row) ?? 0) + 1)
      steps++
    }
  }
  t.comment(`${steps} steps`)
  t.same(
    transitions.filter((row) => !used.has(row)),
    [],
    'every row is reachable',
  )
  t.equal(transitions.length, used.size)
})

t.test('the states that time alone ends are those of the table', async (t) => {
  const spec: JobSpec = {
    id: 'a',
    incarnation: 'i',
    fingerprint: '',
    createdAt: 0,
    maxAttempts: 1,
    resultTTL: 30,
    failureTTL: 20,
  }
  const base = { spec, attempts: 1, at: 100, generation: 'g' }
  const open = [false, true].map((inline) => ({ ...base, payload: '', inline, error: 'e' }))
  const done = { ...base, settledAt: 50, result: 'r', error: 'e', reason: 'error' as const }
  const records: JobRecord[] = [
    ...open.flatMap((fields): JobRecord[] => [
      { state: 'queued', ...fields },
      { state: 'processing', ...fields },
      { state: 'failing', ...fields },
    ]),
    { state: 'completed', ...done },
    { state: 'completed', ...done, outbox: { rows: '', at: 50, generation: null, attempts: 0, until: 170 } },
    { state: 'failed', ...done },
    ...open.map(
      (fields): JobRecord => ({ state: 'queued', ...fields, kept: { result: 'r', settledAt: 1, until: 160 } }),
    ),
  ]
  const endsAt = new Map([
    ['at', 100],
    ['at, and not before the outbox’s end', 170],
    ['at + resultTTL', 130],
    ['at + resultTTL, and not before what is kept', 160],
  ])
  for (const record of records) {
    const name = `${record.state}${!isTerminal(record) && record.inline ? ', inline' : ''}`
    const rows = endings.filter(
      ({ from, when }) => from === record.state && when.every((fact) => holds(fact, record, { type: 'forget' }, 0)),
    )
    t.equal(rows.length, isTerminal(record) || record.inline ? 1 : 0, name)
    const ends = rows[0] === undefined ? null : endsAt.get(rows[0].at)!
    t.equal(living(record, ends === null ? 1e15 : ends - 1), record, `${name}: lives until then`)
    if (ends !== null) t.equal(living(record, ends), null, `${name}: not longer`)
  }
})

t.test('the diagram in the docs shows exactly the moves of the table', async (t) => {
  const text = readFileSync(page, 'utf8')
  const [, diagram = ''] = /```mermaid\n([\s\S]*?)```/.exec(text) ?? []
  const drawn: string[] = []
  for (const line of diagram.split('\n').slice(1)) {
    if (line.trim() === '' || line.trim().startsWith('%%') || line.trim().startsWith('direction')) continue
    const [, from, to, label] = /^\s*(\S+) --> (\S+) : (.+)$/.exec(line) ?? []
    if (from === undefined) return t.fail(`not an edge: ${line}`)
    drawn.push(...label!.split(', ').map((each) => `${from} --> ${to} : ${each}`))
  }
  t.match(diagram, /^stateDiagram-v2\n/)
  t.same(drawn.toSorted(), moves().toSorted())
})

t.test('the table in the docs is the table', async (t) => {
  const text = readFileSync(page, 'utf8')
  const marked = /(<!-- table -->\n)[\s\S]*?(<!-- \/table -->)/
  if (process.env['ASKONCE_WRITE_DOCS'] === '1') writeFileSync(page, text.replace(marked, `$1\n${table()}\n$2`))
  const [written] = marked.exec(readFileSync(page, 'utf8')) ?? []
  t.equal(written, `<!-- table -->\n\n${table()}\n<!-- /table -->`, 'ASKONCE_WRITE_DOCS=1 brings it up to date')
})

/** Each move once: what changes a record, and what time ends. */
function moves(): string[] {
  const node = (situation: Situation): string => (situation === 'absent' ? '[*]' : situation)
  const made = transitions
    .filter(({ changes, from, to }) => changes && (from !== 'absent' || to !== 'absent'))
    .map(({ from, to, command }) => `${node(from)} --> ${node(to)} : ${command}`)
  const passed = endings.map(
    ({ from, when }) => `${from} --> [*] : ${when.includes('inline') ? 'inline and forgotten' : 'TTL ends'}`,
  )
  return [...new Set([...made, ...passed])]
}

/** Markdown: a row a command, a column a state. */
function table(): string {
  const names = [...new Set(transitions.map(({ command }) => command))]
  const cell = (name: CommandName, situation: Situation): string =>
    transitions
      .filter(({ from, command }) => from === situation && command === name)
      .map(({ when, to, changes, answer }) => {
        const move = !changes ? '' : to === situation ? ' ↻' : ` → ${to}`
        return `${when.length === 0 ? '' : `_${when.join(', ')}:_ `}\`${answer}\`${move}`
      })
      .join('<br>')
  const rows = names.map((name) => `| ${name} | ${situations.map((situation) => cell(name, situation)).join(' | ')} |`)
  return [`| | ${situations.join(' | ')} |`, `|---|${situations.map(() => '---|').join('')}`, ...rows, ''].join('\n')
}
