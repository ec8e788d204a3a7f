/** The oracles of crash and chaos runs on made-up notes: each notices what it is there for, and nothing else does. */

import t from 'tap'
import type { CompletedRecord, JobRecord } from '../../src/record.ts'
import type { Diary, Note, NoteContent, Result } from '../support/fleet/notes.ts'
import { judge, type Oracle } from '../support/fleet/oracles.ts'
import { addRound, newReport, reportText } from './report.ts'

/** ms of the notes' clock, in which leases last 1,000. */
type Timed = readonly [ms: number, note: NoteContent]

function diary(name: string, ...notes: readonly Timed[]): Diary {
  return { name, notes: notes.map(([ms, note]) => ({ at: ms * 1_000, ...note }) as Note) }
}

const token = 't1'
const made = { token, createdAt: 5 }
const resultOf = (generation: string, own: Partial<Result> = {}): Result => ({
  run: `${generation}/1`,
  ...made,
  ...own,
})

function called(n: number, op: 'enqueue' | 'wait' | 'run' | 'cancel', id: string, own = token): NoteContent {
  return { kind: 'call', n, op, id, token: own }
}

function answered(n: number, status: string, result?: Result): NoteContent {
  return { kind: 'answer', n, status, ...(result === undefined ? {} : { result }) }
}

function leased(id: string, generation: string, askedMs: number): NoteContent {
  return { kind: 'leased', id, generation, asked: askedMs * 1_000, until: (askedMs + 1_000) * 1_000 }
}

function ran(id: string, generation: string, own: Partial<Extract<Note, { kind: 'ran' }>> = {}): NoteContent {
  return { kind: 'ran', id, run: `${generation}/1`, ...made, attempts: 1, maxAttempts: 3, ...own }
}

const unleased = (id: string, generation: string): NoteContent => ({ kind: 'unleased', id, generation })
const completed = (id: string, result: Result): NoteContent => ({ kind: 'completed', id, result })
const down: NoteContent = { kind: 'down' }

const spec = {
  id: 'steady-1',
  incarnation: 'i',
  fingerprint: '',
  createdAt: 5,
  maxAttempts: 3,
  resultTTL: 1,
  failureTTL: 1,
}

function completedBy(result: Result | null): CompletedRecord {
  const text = result === null ? null : JSON.stringify(result)
  return { state: 'completed', spec, attempts: 1, at: 9, generation: 'g', result: text, settledAt: 8 }
}

interface Faked {
  readonly diaries: readonly Diary[]
  readonly finals?: Readonly<Record<string, JobRecord | null>>
  readonly toleranceMs?: number
}

function judged({ diaries, finals = {}, toleranceMs = 0 }: Faked): { oracles: Oracle[]; messages: string[] } {
  const { violations } = judge({ diaries, finals: new Map(Object.entries(finals)), toleranceMs })
  const oracles = [...new Set(violations.map(({ oracle }) => oracle))]
  return { oracles, messages: violations.map(({ message }) => message) }
}

const producer = diary('p', [0, called(0, 'enqueue', 'steady-1')], [5, answered(0, 'queued')], [9_000, down])
const worker = diary(
  'w',
  [10, leased('steady-1', 'g', 8)],
  [11, ran('steady-1', 'g')],
  [500, unleased('steady-1', 'g')],
  [510, completed('steady-1', resultOf('g'))],
  [9_000, down],
)
const sound: Faked = { diaries: [producer, worker], finals: { 'steady-1': completedBy(resultOf('g')) } }

const fine: Record<string, Faked> = {
  'a job that ran': sound,
  'a lease that its owner believes in no more is taken over': {
    ...sound,
    diaries: [
      producer,
      diary('w1', [10, leased('steady-1', 'f', 8)], [11, ran('steady-1', 'f')], [900, leased('steady-1', 'f', 600)]),
      diary(
        'w2',
        [1_700, leased('steady-1', 'g', 1_600)],
        [1_701, ran('steady-1', 'g')],
        [1_800, unleased('steady-1', 'g')],
      ),
    ],
  },
  'a lease that is heard of too late': {
    ...sound,
    diaries: [producer, worker, diary('w1', [2_000, leased('steady-1', 'f', 8)])],
  },
  'a renewal that comes after the verdict was sent': {
    ...sound,
    diaries: [
      producer,
      diary('w1', [10, leased('steady-1', 'f', 8)], [20, unleased('steady-1', 'f')], [30, leased('steady-1', 'f', 15)]),
      diary('w2', [40, leased('steady-1', 'g', 35)], [41, ran('steady-1', 'g')]),
    ],
  },
  'a killed producer has an open call': { diaries: [diary('p', [0, called(0, 'wait', 'steady-1')])] },
  'clocks that are apart': {
    ...sound,
    toleranceMs: 100,
    diaries: [
      producer,
      diary('w1', [10, leased('steady-1', 'f', 8)]),
      diary('w2', [950, leased('steady-1', 'g', 940)], [951, ran('steady-1', 'g')]),
    ],
  },
}

const broken: Record<string, [Oracle, Faked]> = {
  'an acknowledged job is gone': ['conservation', { diaries: [producer], finals: { 'steady-1': null } }],
  'a result is lost': ['conservation', { ...sound, finals: { 'steady-1': completedBy(null) } }],
  'a job was created twice': [
    'no replacement',
    {
      ...sound,
      diaries: [
        ...sound.diaries,
        diary('p2', [20, called(0, 'enqueue', 'steady-1', 't2')], [25, answered(0, 'queued')]),
      ],
    },
  ],
  'two records of one id ran': [
    'no replacement',
    {
      ...sound,
      diaries: [...sound.diaries, diary('w2', [3_000, ran('steady-1', 'h', { token: 't2', createdAt: 6 })])],
    },
  ],
  'two leases at once': [
    'one lease',
    {
      ...sound,
      diaries: [
        producer,
        diary('w1', [10, leased('steady-1', 'g', 8)], [11, ran('steady-1', 'g')]),
        diary('w2', [300, leased('steady-1', 'h', 290)]),
      ],
    },
  ],
  'a dead worker’s lease is taken over too early': [
    'one lease',
    {
      ...sound,
      diaries: [
        producer,
        diary('w1', [5, leased('steady-1', 'f', 4)]),
        diary('w2', [900, leased('steady-1', 'g', 890)], [901, ran('steady-1', 'g')]),
      ],
    },
  ],
  'a lease that was taken over settles': [
    'fencing',
    {
      ...sound,
      diaries: [
        producer,
        diary(
          'w1',
          [10, leased('steady-1', 'g', 8)],
          [11, ran('steady-1', 'g')],
          [2_500, unleased('steady-1', 'g')],
          [2_510, completed('steady-1', resultOf('g'))],
        ),
        diary('w2', [1_500, leased('steady-1', 'h', 1_490)]),
      ],
    },
  ],
  'two verdicts': [
    'one verdict',
    {
      ...sound,
      diaries: [
        ...sound.diaries,
        diary('w2', [3_000, ran('steady-1', 'h')], [3_010, completed('steady-1', resultOf('h'))]),
      ],
    },
  ],
  'two callers got two results': [
    'one verdict',
    {
      ...sound,
      diaries: [
        ...sound.diaries,
        diary('w2', [3_000, ran('steady-1', 'h')]),
        diary('p2', [3_100, called(0, 'wait', 'steady-1')], [3_200, answered(0, 'done', resultOf('h'))]),
      ],
    },
  ],
  'a job failed that never should': [
    'one verdict',
    { ...sound, diaries: [...sound.diaries, diary('w2', [3_000, { kind: 'failed', id: 'steady-1', attempts: 1 }])] },
  ],
  'one attempt too many': [
    'attempts',
    { diaries: [diary('w', [0, ran('failing-1', 'g', { run: 'g/4', attempts: 4 })])] },
  ],
  'a cancelled payload ran': [
    'cancel',
    {
      diaries: [
        diary(
          'p',
          [0, called(0, 'enqueue', 'dropped-1')],
          [5, answered(0, 'queued')],
          [10, called(1, 'cancel', 'dropped-1')],
          [15, answered(1, 'cancelled')],
        ),
        diary('w', [60, ran('dropped-1', 'g')]),
      ],
    },
  ],
  'a wait without an answer': ['answers', { diaries: [diary('p', [0, called(0, 'wait', 'short-1')], [9_000, down])] }],
  'a wait that took too long': [
    'answers',
    {
      diaries: [
        diary(
          'p',
          [0, called(0, 'wait', 'short-1')],
          [9_000, { kind: 'answer', n: 0, status: 'error', code: 'ASKONCE_TIMEOUT' }],
        ),
      ],
    },
  ],
  'a result that nobody gave': [
    'answers',
    { diaries: [diary('p', [0, called(0, 'wait', 'short-1')], [10, answered(0, 'done', resultOf('x'))])] },
  ],
  'another job’s payload': [
    'answers',
    { diaries: [diary('w', [0, { kind: 'problem', message: 'has the payload of' }])] },
  ],
}

for (const [name, faked] of Object.entries(fine)) {
  t.test(`fine: ${name}`, async (t) => {
    t.same(judged(faked).messages, [])
  })
}

for (const [name, [oracle, faked]] of Object.entries(broken)) {
  t.test(`noticed: ${name}`, async (t) => {
    const { oracles, messages } = judged(faked)
    t.same(oracles, [oracle], messages.join('\n'))
  })
}

t.test('the report tells of operations, faults and violations, as text and as JSON', async (t) => {
  const report = newReport(17, ['file', 'redis'])
  const [, faked] = broken['two leases at once'] as [Oracle, Faked]
  const found = judge({ diaries: faked.diaries, finals: new Map(Object.entries(faked.finals ?? {})), toleranceMs: 0 })
  addRound(report, 'file', 3, { ...found, stalls: 1, compactions: 2 })
  const own = report.storages['file']
  if (own !== undefined) own.faults['kill a worker'] = 4
  const text = reportText(report)
  t.match(text, /^askonce chaos: 1 violations in 0 s$/m)
  t.match(text, /^seed 17, started /m)
  t.match(text, /^askonce \d+\.\d+\.\d+, commit \S+, Node \d+/m)
  t.match(
    text,
    /^file: 1 rounds, 1 ids acknowledged, 1 handler runs, 0 jobs ran more than once, 1 stalls, 2 compactions$/m,
  )
  t.match(text, /^ {2}operations: 1\n {12}1 {2}enqueue$/m)
  t.match(text, /^ {2}faults: 4\n {12}4 {2}kill a worker$/m)
  t.match(text, /^VIOLATION of one lease \(file, round 3\): "steady-1": h began 708\.0 ms before the end of g$/m)
  t.ok(text.split('\n').length < 60, 'one page')
  const { seed, violations } = JSON.parse(JSON.stringify(report)) as typeof report
  t.equal(seed, 17)
  t.match(violations, [{ oracle: 'one lease', storage: 'file', round: 3 }])
})
