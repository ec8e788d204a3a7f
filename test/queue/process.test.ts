/** What only a process of its own shows: when it ends by itself, what it warns of, what it keeps in memory. */

import { execFile } from 'node:child_process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t from 'tap'
import { typescript } from '../support/typescript.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  readonly killed: boolean
}

/** Children at once: most of them sleep. */
const childrenMax = 4
let children = 0
const waiting: (() => void)[] = []

/** Runs a script as soon as there is room; all are started at once, the tests below wait for them one by one. */
async function script(body: string, options: { flags?: string[] } = {}): Promise<Ended> {
  if (children >= childrenMax) await new Promise<void>((resolve) => waiting.push(resolve))
  children++
  try {
    return await runScript(body, options)
  } finally {
    children--
    waiting.shift()?.()
  }
}

/** Runs a script with `Queue`, `MemoryStorage`, `VirtualClock` and `done(value)` at hand; ended after `patienceMs`. */
function runScript(body: string, { patienceMs = 20_000, flags = [] as string[] } = {}): Promise<Ended> {
  const url = (path: string) => JSON.stringify(pathToFileURL(`${root}${path}`).href)
  const source = `
    const { Queue, ...askonce } = await import(${url('src/index.ts')})
    const { MemoryStorage } = await import(${url('storages/memory/index.ts')})
    const { VirtualClock } = await import(${url('storages/conformance/virtual-clock.ts')})
    const say = (value) => console.log(JSON.stringify(value))
    const unrefSleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms).unref())
    ${body}
  `
  const args = [...flags, ...typescript, '--input-type=module', '--eval', source]
  return new Promise((resolve) => {
    // Not tap's own environment: it would instrument the child.
    const { NODE_OPTIONS: _, ...env } = process.env
    execFile(process.execPath, args, { cwd: root, timeout: patienceMs, env }, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number((error as { code?: number }).code ?? -1)
      resolve({
        code,
        stdout: stdout.trim(),
        stderr: stderr.trim(),
        killed: (error as { killed?: boolean })?.killed ?? false,
      })
    })
  })
}

const ends: Record<string, string> = {
  'a queue that was only made': `new Queue()`,
  'a queue that only enqueues and reads, never started nor stopped': `
    const queue = new Queue()
    await queue.enqueue('id', 1)
    await queue.enqueue('later', 1, { delay: 3_600_000 })
    await queue.getStatus('id')
    await queue.cancel('id')`,
  'a queue whose run() ended': `
    const queue = new Queue()
    await queue.run('id', 1, async () => 1)
    await queue.run('id', 1, async () => 2)`,
  'a queue whose waits ended by time-out': `
    const queue = new Queue()
    await queue.enqueueAndWait('id', 1, { timeout: 20 }).catch(() => {})`,
  'a stopped worker, with a delayed job, an expiring result and a batch handler': `
    const queue = new Queue()
    queue.executeBatch((jobs) => jobs.map(() => ({ result: 1 })))
    await queue.start()
    await queue.enqueue('later', 1, { delay: 3_600_000 })
    await queue.enqueueAndWait('id', 1)
    await queue.stop()`,
  'a stopped worker whose handler never settles': `
    const queue = new Queue({ stopTimeout: 20 })
    queue.execute(() => new Promise(() => {}))
    await queue.start()
    await queue.enqueue('id', 1)
    await new Promise((resolve) => queue.once('started', resolve))
    await queue.stop()`,
  'two queues of one storage after the last stop': `
    const storage = new MemoryStorage()
    const queues = ['a', 'b'].map((name) => new Queue({ storage, name }).execute(() => 1))
    for (const queue of queues) await queue.start()
    for (const queue of queues) await queue.enqueueAndWait('id', 1)
    for (const queue of queues) await queue.stop()`,
  'await using': `
    { const queue = new Queue().execute(() => 1)
      await queue.start()
      await queue.enqueueAndWait('id', 1)
      await queue[Symbol.asyncDispose]() }`,
}

for (const [name, body] of Object.entries(ends)) {
  const child = script(`${body}; say('end')`)
  t.test(`the process ends by itself: ${name}`, async (t) => {
    const { code, stdout, stderr } = await child
    t.equal(code, 0)
    t.equal(stdout, '"end"')
    t.equal(stderr, '', 'without a warning')
  })
}

{
  const child = script(`
    const queue = new Queue({ clock: undefined }).execute(() => 1)
    await queue.start()
    setTimeout(() => { say('alive'); queue.stop() }, 1_500).unref()
  `)
  t.test('a started worker keeps its process alive, idle or with a handler that waits for nothing', async (t) => {
    const idle = await child
    t.match(idle, { code: 0, stdout: '"alive"' })
  })
}

{
  const child = script(`
    const queue = new Queue().execute(() => new Promise(() => {}))
    await queue.start()
    await queue.enqueue('id', 1, { delay: 30 })
    setTimeout(() => { say('alive'); process.exit() }, 1_500).unref()
  `)
  t.test('a worker whose only slot is busy with a job that became due by time keeps its process alive', async (t) => {
    const busy = await child
    t.match(busy, { code: 0, stdout: '"alive"' })
  })
}

{
  const child = script(`
    const queue = new Queue()
    const error = await queue.enqueueAndWait('id', 1, { timeout: 1_200 }).catch((error) => error)
    say(error.code)
    const result = await queue.run('other', 1, () => unrefSleep(1_200).then(() => 'ran'))
    say(result)
  `)
  t.test('while somebody waits the process does not end; a wait for nobody ends with its time-out', async (t) => {
    const waiting = await child
    t.match(waiting, { code: 0, stdout: '"ASKONCE_TIMEOUT"\n"ran"', stderr: '' })
  })
}

{
  const child = script(`
    const long = 2 ** 31 + 1
    const options = { resultTTL: long, failureTTL: long, leaseMs: long, handlerTimeoutMs: long, timeout: long,
      stopTimeout: long, sweepIntervalMs: long * 2, retry: () => long }
    const queue = new Queue(options)
    const ran = []
    queue.execute(({ id }) => { ran.push(id); if (id === 'fails') throw new Error('no'); return id })
    await queue.start()
    await queue.enqueue('delayed', 1, { delay: long })
    await queue.enqueue('delayed for a century', 1, { delay: askonce.limits.durationMsMax })
    await queue.enqueue('fails', 1)
    await queue.enqueueAndWait('kept', 1)
    await queue.enqueueAndWait('touched', 1, { resultTTL: askonce.limits.durationMsMax, timeout: askonce.limits.durationMsMax })
    await queue.updateResultTTL('touched', long * 3)
    const wait = queue.enqueueAndWait('delayed', 1).catch((error) => error.code)
    const inline = await queue.run('inline', 1, async () => 'inline', { resultTTL: long, timeout: long })
    const batch = new Queue({ name: 'batch' }).executeBatch((jobs) => jobs.map(() => ({ result: 1 })), { waitMs: long, size: 2 })
    await batch.start()
    await batch.enqueue('lonely', 1)
    await unrefSleep(0)
    await new Promise((resolve) => setTimeout(resolve, 150))
    say(ran)
    say([(await queue.getStatus('delayed')).state, (await queue.getStatus('fails')).state, await queue.getResult('kept'),
      await queue.getResult('touched'), await queue.getResult('inline'), batch.counters.executed])
    await queue.stop()
    say(await wait)
    process.exit()
  `)
  t.test(
    'durations beyond 2^31 ms with the system clock: nothing fires at once, no TimeoutOverflowWarning',
    async (t) => {
      const ended = await child
      t.equal(ended.code, 0)
      t.strictSame(
        ended.stdout.split('\n').map((line) => JSON.parse(line)),
        [['fails', 'kept', 'touched'], ['queued', 'failing', 'kept', 'touched', 'inline', 0], 'ASKONCE_STOPPED'],
      )
      t.equal(ended.stderr, '', 'no warning')
    },
  )
}

{
  const child = script(`
    const queue = new Queue({ maxAttempts: 2, retry: () => 0 })
    const odd = { undefined, null: null, text: 'text', frozen: Object.freeze(new Error('frozen')), number: 1 }
    queue.on('error', () => { throw new Error('error listener') })
    queue.on('failed', async () => { throw new Error('async listener') })
    queue.execute(({ payload }) => { throw odd[payload] })
    await queue.start()
    const outcomes = await Promise.allSettled(Object.keys(odd).map((kind) => queue.enqueueAndWait(kind, kind)))
    say(outcomes.map(({ reason }) => reason.code))
    await queue.stop()
  `)
  t.test(
    'a handler that throws anything at all, and listeners that do, end no process and leave no unhandled rejection',
    async (t) => {
      const ended = await child
      t.match(ended, { code: 0, stderr: '' })
      t.strictSame(JSON.parse(ended.stdout), Array(5).fill('ASKONCE_JOB_FAILED'))
    },
  )
}

{
  const child = script(`
    const { getEventListeners } = await import('node:events')
    const queue = new Queue()
    const { signal } = new AbortController()
    const waits = Array.from({ length: 1_000 }, () => queue.enqueueAndWait('id', 1, { signal }))
    const runs = Array.from({ length: 1_000 }, (_, n) => queue.run('inline', 1, async () => 'inline', { signal }))
    const during = getEventListeners(signal, 'abort').length
    queue.execute(() => 'answer')
    await queue.start()
    const answers = new Set(await Promise.all([...waits, ...runs]))
    say([during, getEventListeners(signal, 'abort').length, [...answers].sort(), queue.counters.executed])
    await queue.stop()
  `)
  t.test(
    'OptimalBits/bull#738: 1,000 waiters of one id, 1,000 waits on one signal: no MaxListenersExceededWarning',
    async (t) => {
      const ended = await child
      t.match(ended, { code: 0, stderr: '' })
      t.strictSame(JSON.parse(ended.stdout), [1, 0, ['answer', 'inline'], 2])
    },
  )
}

{
  const child = script(
    `
    const queue = new Queue({ resultTTL: 1, concurrency: 100 })
    queue.on('completed', () => { throw new Error('listener') })
    queue.execute(() => 'x'.repeat(100))
    await queue.start()
    const round = async (n) => {
      for (let m = 0; m < 20; m++) {
        await Promise.all(Array.from({ length: 200 }, (_, k) => queue.enqueueAndWait(\`\${n}-\${m}-\${k}\`, k)))
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
      gc()
      return process.memoryUsage().heapUsed
    }
    await round('warm 1')
    await round('warm 2')
    const before = await round('before')
    let after
    for (let n = 0; n < 3; n++) after = await round(n)
    say(after - before)
    await queue.stop()
  `,
    { flags: ['--expose-gc'] },
  )
  t.test('taskforcesh/bullmq#1129: a listener that throws on every job: the heap stays flat', async (t) => {
    const ended = await child
    t.equal(ended.code, 0)
    t.ok(Number(ended.stdout) < 2_000_000, `${ended.stdout} bytes more after 12,000 jobs`)
  })
}

{
  const child = script(
    `
    const queue = new Queue({ resultTTL: 1, concurrency: 50, retry: () => 0, maxAttempts: 2 })
    queue.execute(({ attempts }) => { if (attempts === 1) throw new Error('again'); return attempts })
    await queue.start()
    const controller = new AbortController()
    const round = async (n) => {
      for (let m = 0; m < 10; m++) {
        const ids = Array.from({ length: 100 }, (_, k) => \`\${n}-\${m}-\${k}\`)
        await Promise.all(ids.flatMap((id) => [
          queue.enqueueAndWait(id, 1, { signal: controller.signal }),
          queue.run('run ' + id, 1, async () => 1, { signal: controller.signal }),
          queue.enqueueAndWait('late ' + id, 1, { delay: 100_000, timeout: 1 }).catch(() => queue.cancel('late ' + id)),
        ]))
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
      gc()
      return process.memoryUsage().heapUsed
    }
    await round('warm 1')
    await round('warm 2')
    const before = await round('before')
    let after
    for (let n = 0; n < 3; n++) after = await round(n)
    say(after - before)
    await queue.stop()
  `,
    { flags: ['--expose-gc'] },
  )
  t.test('waits, runs, retries and cancels leave nothing in memory behind', async (t) => {
    const ended = await child
    t.equal(ended.code, 0)
    t.ok(Number(ended.stdout) < 2_000_000, `${ended.stdout} bytes more after 9,000 jobs`)
  })
}

{
  const child = script(
    `
    let collected = 0
    const registry = new FinalizationRegistry(() => { collected++ })
    const use = async (n) => {
      const storage = new MemoryStorage()
      registry.register(storage, n)
      const queue = new Queue({ storage }).execute(({ payload }) => payload)
      registry.register(queue, n)
      await queue.start()
      await queue.enqueueAndWait('id', 'x'.repeat(1_000_000), { resultTTL: 3_600_000 })
      await queue.enqueue('later', 1, { delay: 3_600_000 })
      await queue.stop()
    }
    for (let n = 0; n < 20; n++) await use(n)
    for (let n = 0; n < 50 && collected < 40; n++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
      gc()
    }
    say(collected)
  `,
    { flags: ['--expose-gc'] },
  )
  t.test('a MemoryStorage that was dropped is collected, though its records have long to live', async (t) => {
    const ended = await child
    t.equal(ended.code, 0)
    t.ok(Number(ended.stdout) >= 38, `${ended.stdout} of 40 were collected`)
  })
}

{
  const child = script(
    `
    let collected = 0
    const registry = new FinalizationRegistry(() => { collected++ })
    const use = async (n) => {
      const queue = new Queue({ leaseMs: 90, handlerTimeoutMs: 200 })
      registry.register(queue, n)
      await queue.run('id', 'x'.repeat(1_000_000), async () => 1)
    }
    for (let n = 0; n < 20; n++) await use(n)
    for (let n = 0; n < 50 && collected < 20; n++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
      gc()
    }
    say(collected)
  `,
    { flags: ['--expose-gc'] },
  )
  t.test('a queue dropped without a stop is collected, too, once its last timers have fired', async (t) => {
    const ended = await child
    t.equal(ended.code, 0)
    t.ok(Number(ended.stdout) >= 18, `${ended.stdout} of 20 were collected`)
  })
}

{
  const child = script(`
    const queue = new Queue({ leaseMs: 90 })
    const events = []
    queue.on('blocked', ({ blockedMs, leaseMs }) => events.push([blockedMs > 30, leaseMs]))
    queue.execute(async () => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      const end = performance.now() + 300
      while (performance.now() < end);
      await new Promise((resolve) => setTimeout(resolve, 50))
      return 'done'
    })
    await queue.start()
    const result = await queue.enqueueAndWait('id', 1)
    say([result, events])
    await queue.stop()
  `)
  t.test('a handler that blocks the event loop for longer than its lease: a blocked event', async (t) => {
    const ended = await child
    t.equal(ended.code, 0)
    const [result, events] = JSON.parse(ended.stdout)
    t.equal(result, 'done')
    t.ok(events.length >= 1)
    t.strictSame(events[0], [true, 90])
  })
}
