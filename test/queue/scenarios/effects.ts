/** Effects behind a record: once, and the outbox with its relay. */

import type { Job } from '../../../src/options.ts'
import type { OutboxMessage } from '../../../src/relay.ts'
import { gate, ManualHandler, type Scenario } from '../../support/queue-rig.ts'
import { failAfter, failBefore } from '../support/faulty-storage.ts'

const patient = { timeout: 1_000_000 }

async function posts(job: Job<unknown>): Promise<string> {
  job.outbox('mail', { to: job.id })
  job.outbox('audit', [1])
  return 'done'
}

export const effects: readonly Scenario[] = [
  {
    name: 'once: an effect runs once per record, whichever attempt, process or caller asks',
    async run(t, rig) {
      let mails = 0
      const mail = () => ++mails
      const worker = await rig.worker<number, string>(
        async (job) => {
          await job.once('mail', mail)
          if (job.attempts < 3) throw new Error('again')
          return 'done'
        },
        { retry: () => 0 },
      )
      t.equal(await rig.drive(worker.enqueueAndWait('id', 1, patient)), 'done')
      t.equal(mails, 1)
      const others = await Promise.all(Array.from({ length: 4 }, () => rig.queue<number, string>()))
      const all = Array.from({ length: 40 }, (_, n) => others[n % 4]!.effects.once('id', 'audit', () => 'mine'))
      const outcomes = await rig.drive(Promise.all(all))
      t.strictSame(
        outcomes.filter(({ ran }) => ran),
        [{ ran: true, value: 'mine' }],
      )
      t.strictSame(await rig.drive(worker.effects.once('id', 'mail', mail)), { ran: false })
    },
  },
  {
    name: 'once: an effect that throws is not run again; a later record of the id has effects of its own',
    async run(t, rig) {
      const queue = await rig.queue<number, string>()
      await rig.drive(queue.run('id', 1, async () => 'x', { ...patient, resultTTL: rig.shortMs }))
      const thrower = () => Promise.reject(new Error('no mail'))
      t.match(await rig.refusal(queue.effects.once('id', 'mail', thrower)), { message: 'no mail' })
      t.strictSame(await rig.drive(queue.effects.once('id', 'mail', thrower)), { ran: false })
      await rig.advance(rig.shortMs * 2)
      t.match(await rig.refusal(queue.effects.once('id', 'mail', () => 1)), { code: 'ASKONCE_RESULT_GONE' })
      await rig.drive(queue.run('id', 1, async () => 'y', patient))
      t.strictSame(await rig.drive(queue.effects.once('id', 'mail', () => 2)), { ran: true, value: 2 })
    },
  },
  {
    name: 'once: a mark whose reply was lost fails the call rather than run the effect in doubt; bad names are refused',
    async run(t, rig) {
      const { storage } = await rig.process()
      const queue = await rig.queue<number, string>({ storage })
      await rig.drive(queue.run('id', 1, async () => 'x', patient))
      storage.on('mark', failAfter())
      let ran = 0
      t.match(await rig.refusal(queue.effects.once('id', 'mail', () => ++ran)), { code: 'ASKONCE_STORAGE' })
      t.strictSame(await rig.drive(queue.effects.once('id', 'mail', () => ++ran)), { ran: false })
      t.equal(ran, 0)
      for (const name of ['', 'a/b', 'a b', 'é', 'x'.repeat(65), 7 as never]) {
        t.match(await rig.refusal(queue.effects.once('id', name, () => 1)), {
          code: 'ASKONCE_INVALID_ARGUMENT',
          field: 'name',
        })
      }
    },
  },
  {
    name: 'outbox: rows are delivered once the job is completed, each with its key; a failed job posts nothing',
    async run(t, rig) {
      const got: OutboxMessage[] = []
      const worker = await rig.worker<number, string>(
        async (job) => {
          await posts(job)
          if (job.id === 'bad') throw new Error('no')
          return 'done'
        },
        { maxAttempts: 1 },
      )
      const other = await rig.queue()
      const delivered: unknown[] = []
      other.on('delivered', (event) => delivered.push(event))
      const relay = other.relay((message) => void got.push(message))
      t.match(await rig.refusal(worker.enqueueAndWait('bad', 1, patient)), { code: 'ASKONCE_JOB_FAILED' })
      t.equal(await rig.drive(worker.enqueueAndWait('a/b', 1, patient)), 'done')
      await rig.until('both rows are there', () => got.length === 2)
      t.match(got[0], { id: 'a/b', name: 'mail', key: 'a/b/mail', payload: { to: 'a/b' }, attempts: 1 })
      t.match(got[1], { name: 'audit', key: 'a/b/audit', payload: [1] })
      t.equal(typeof got[0]!.generation, 'string')
      await rig.drive(relay.stop())
      t.equal(delivered.length, 2)
      t.match(other.counters, { delivered: 2, undelivered: 0 })
    },
  },
  {
    name: 'outbox: inline runs post, too; a relay that starts later delivers what it finds',
    async run(t, rig) {
      const queue = await rig.queue<number, string>()
      await rig.drive(queue.run('id', 1, posts, patient))
      const got: string[] = []
      const later = await rig.queue()
      later.relay(({ key }) => void got.push(key))
      await rig.until('they are delivered', () => got.length === 2)
      t.strictSame(got, ['id/mail', 'id/audit'])
    },
  },
  {
    name: 'outbox: what fails is delivered again, and only that',
    async run(t, rig) {
      const got: string[] = []
      const queue = await rig.queue<number, string>()
      const undelivered: unknown[] = []
      queue.on('undelivered', ({ name, error, attempts }) => undelivered.push([name, error.message, attempts]))
      queue.relay(
        ({ name, attempts }) => {
          got.push(`${name} ${attempts}`)
          if (name === 'mail' && attempts < 3) throw new Error('busy')
        },
        { retry: () => 1 },
      )
      await rig.drive(queue.run('id', 1, posts, patient))
      await rig.until('all is delivered', () => queue.counters.delivered === 2)
      t.strictSame(got, ['mail 1', 'audit 1', 'mail 2', 'mail 3'])
      t.strictSame(undelivered, [
        ['mail', 'busy', 1],
        ['mail', 'busy', 2],
      ])
    },
  },
  {
    name: 'outbox: the record outlives its TTL until its rows are delivered, and no longer',
    async run(t, rig) {
      const queue = await rig.queue<number, string>()
      await rig.drive(queue.run('id', 1, posts, { ...patient, resultTTL: rig.shortMs }))
      await rig.advance(rig.shortMs * 2)
      t.equal(await rig.drive(queue.getResult('id')), 'done')
      const again = await rig.drive(queue.enqueue('id', 1, { refresh: true }))
      t.strictSame(again, { status: 'duplicate', existingState: 'completed' }, 'no refresh before that')
      const relay = queue.relay(() => {})
      await rig.until('it is gone', async () => (await queue.getStatus('id')) === null)
      await rig.drive(relay.stop())
    },
  },
  {
    name: 'outbox: rows that nobody delivers are given up when their time ends',
    async run(t, rig) {
      const queue = await rig.queue<number, string>({ outboxTTL: rig.shortMs, resultTTL: rig.shortMs })
      await rig.drive(queue.run('id', 1, posts, patient))
      t.equal(await rig.drive(queue.getResult('id')), 'done')
      await rig.advance(rig.shortMs * 2)
      t.equal(await rig.drive(queue.getStatus('id')), null)
    },
  },
  {
    name: 'outbox: a relay that hangs loses its lease, its signal aborts, and another relay delivers',
    async run(t, rig) {
      const queue = await rig.queue<number, string>()
      const stuck: OutboxMessage[] = []
      const hang = gate()
      const first = await rig.queue()
      first.relay(
        (message) => {
          stuck.push(message)
          return hang.promise
        },
        { leaseMs: rig.leaseMs },
      )
      await rig.drive(queue.run('id', 1, posts, patient))
      await rig.until('the first has them', () => stuck.length > 0)
      const got: string[] = []
      const second = await rig.queue()
      second.relay(({ name }) => void got.push(name))
      await rig.until('the second delivers', () => got.includes('mail') && got.includes('audit'))
      t.ok(stuck[0]!.signal.aborted)
      hang.open()
      await rig.calm()
    },
  },
  {
    name: 'outbox: trouble with the storage delays deliveries, and loses none',
    async run(t, rig) {
      const { storage } = await rig.process()
      const queue = await rig.queue<number, string>()
      const relaying = await rig.queue<number, string>({ storage })
      storage.on('deliver', failBefore(), 2)
      storage.on('deliver', failAfter(), 2)
      const got = new Set<string>()
      relaying.relay(({ key }) => void got.add(key), { leaseMs: rig.leaseMs })
      for (const id of ['a', 'b', 'c']) await rig.drive(queue.run(id, 1, posts, patient))
      await rig.until('all are delivered', () => got.size === 6)
      t.ok(rig.takeErrors().every(({ name }) => name === 'StorageError'))
    },
  },
  {
    name: 'outbox: stop() lets the deliveries under way end, and begins no more',
    async run(t, rig) {
      const handler = new ManualHandler<number, string>()
      const queue = await rig.queue<number, string>({ stopTimeout: 60_000 })
      await rig.drive(queue.run('id', 1, posts, patient))
      const started: string[] = []
      const open = gate()
      queue.relay(async ({ name }) => {
        started.push(name)
        await open.promise
      })
      await rig.until('one is under way', () => started.length === 1)
      const stopped = queue.stop()
      await rig.calm()
      open.open()
      await rig.drive(stopped)
      t.strictSame(started, ['mail', 'audit'], 'the rows of one record go together')
      const other = await rig.queue()
      t.equal(await rig.drive(other.getResult('id')), 'done')
      t.throws(() => queue.relay(() => {}), { code: 'ASKONCE_STOPPED' })
      t.equal(handler.calls.length, 0)
    },
  },
  {
    name: 'outbox: a row that hangs does not keep those behind it from their turn, and costs them no delivery',
    async run(t, rig) {
      const queue = await rig.queue<number, string>()
      const seen: string[] = []
      const undelivered: string[] = []
      queue.on('undelivered', ({ name }) => undelivered.push(name))
      queue.relay(
        ({ name }) => {
          seen.push(name)
          return name === 'mail' ? new Promise(() => {}) : undefined
        },
        { leaseMs: rig.leaseMs, retry: () => 0 },
      )
      await rig.drive(queue.run('id', 1, posts, patient))
      await rig.until('the one behind is delivered', () => queue.counters.delivered === 1)
      t.strictSame(seen.slice(0, 2), ['mail', 'audit'])
      t.strictSame([...new Set(undelivered)], ['mail'])
    },
  },
  {
    name: 'outbox: stop() cuts off deliveries that take longer than stopTimeout, and nothing keeps the process',
    async run(t, rig) {
      const queue = await rig.queue<number, string>({ stopTimeout: rig.shortMs })
      const signals: AbortSignal[] = []
      queue.relay(({ signal }) => {
        signals.push(signal)
        return new Promise(() => {})
      })
      await rig.drive(queue.run('id', 1, posts, patient))
      await rig.until('one hangs', () => signals.length === 1)
      await rig.drive(queue.stop())
      t.match(signals[0], { aborted: true, reason: { code: 'ASKONCE_STOPPED' } })
      const got: string[] = []
      const other = await rig.queue()
      other.relay(({ name }) => void got.push(name))
      await rig.until('another delivers', () => got.length === 2)
    },
  },
  {
    name: 'outbox: calls that wait for a refresh are refused, not answered by the old result, while rows are pending',
    async run(t, rig) {
      const queue = await rig.queue<number, string>()
      await rig.drive(queue.run('id', 1, posts, patient))
      const refresh = { ...patient, refresh: true }
      t.match(await rig.refusal(queue.run('id', 1, posts, refresh)), { code: 'ASKONCE_STATE' })
      t.match(await rig.refusal(queue.enqueueAndWait('id', 1, refresh)), { code: 'ASKONCE_STATE' })
      queue.relay(() => {})
      await rig.until('they are delivered', () => queue.counters.delivered === 2)
      await rig.calm()
      t.equal(await rig.drive(queue.run('id', 1, async () => 'new', refresh)), 'new')
    },
  },
  {
    name: 'outbox: rows are checked when they are posted, and none after the outcome is decided',
    async run(t, rig) {
      const queue = await rig.queue<number, string>()
      let late: Job<number> | null = null
      await rig.drive(
        queue.run(
          'id',
          1,
          async (job) => {
            late = job
            t.throws(() => job.outbox('a/b', 1), { code: 'ASKONCE_INVALID_ARGUMENT', field: 'name' })
            t.throws(() => job.outbox('x', 1n), { code: 'ASKONCE_SERIALIZATION' })
            t.throws(() => job.outbox('x', 'y'.repeat(70_000)), { code: 'ASKONCE_TOO_LARGE' })
            job.outbox('x', 'y'.repeat(40_000))
            t.throws(() => job.outbox('z', 'y'.repeat(40_000)), { code: 'ASKONCE_TOO_LARGE' })
            job.outbox('x', 'small')
            job.outbox('nothing', undefined)
            return 'done'
          },
          patient,
        ),
      )
      t.throws(() => late!.outbox('y', 1), { code: 'ASKONCE_STATE' })
      const got: unknown[] = []
      queue.relay(({ name, payload }) => void got.push([name, payload]))
      await rig.until('they are delivered', () => got.length === 2)
      t.strictSame(got, [
        ['x', 'small'],
        ['nothing', undefined],
      ])
    },
  },
]
