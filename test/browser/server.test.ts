/** The example's server as a process of its own, without a browser. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { readOptions } from '../../docs/examples/decode-server/options.ts'
import { typescript } from '../support/typescript.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const vin = '1HGCM82633A004352'

interface Started {
  readonly child: ChildProcess
  readonly url: string
}

function run(t: Test, args: readonly string[]): ChildProcess {
  const command = [...typescript, 'docs/examples/decode-server/server.ts', ...args]
  const child = spawn(process.execPath, command, { cwd: root, timeout: 60_000, killSignal: 'SIGKILL' })
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  return child
}

async function start(t: Test, dir: string): Promise<Started> {
  const child = run(t, ['--port', '0', '--latency', '0', '--dir', dir])
  const [line] = (await once(createInterface({ input: child.stdout! }), 'line')) as [string]
  const url = /^http:\S+/.exec(line)?.[0]
  if (url === undefined) throw new Error(`no address in: ${line}`)
  return { child, url }
}

async function folder(t: Test): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), 'askonce-decode-'))
  t.teardown(() => rm(dir, { recursive: true, force: true }))
  return dir
}

function decode(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}api/decode`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'idempotency-key': '"8e03978e"',
      cookie: 'visitor=somebody',
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

async function answerOf(response: Response): Promise<unknown[]> {
  const { code, make } = (await response.json()) as { code?: string; make?: string }
  return [response.status, code ?? make, response.headers.get('idempotent-replay')]
}

async function counters(url: string): Promise<{ http: { upstream: number }; vin: { vpic_calls: number } }> {
  const response = await fetch(`${url}api/counters`)
  return (await response.json()) as Awaited<ReturnType<typeof counters>>
}

t.test('one answer a key, also after the server was killed; ends by itself on SIGTERM', async (t) => {
  const dir = await folder(t)
  const first = await start(t, dir)
  t.strictSame(await answerOf(await decode(first.url, { vin })), [200, 'HONDA', null])
  t.strictSame(await answerOf(await decode(first.url, { vin })), [200, 'HONDA', 'true'])
  t.match(await counters(first.url), { http: { upstream: 1 }, vin: { vpic_calls: 1 } })
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')

  const second = await start(t, dir)
  t.strictSame(await answerOf(await decode(second.url, { vin })), [200, 'HONDA', 'true'])
  t.match(await counters(second.url), { http: { upstream: 0 }, vin: { vpic_calls: 0 } })
  second.child.kill('SIGTERM')
  t.strictSame(await once(second.child, 'exit'), [0, null])
})

t.test('what is refused, each in its own words', async (t) => {
  const { url } = await start(t, await folder(t))
  t.strictSame(await answerOf(await decode(url, { vin: 'n/a' })), [422, 'invalid-input', null])
  for (const body of ['', '7', 'null', '[]', '{"vin":7}', '{"vin":']) {
    t.strictSame(await answerOf(await decode(url, body)), [422, 'invalid-input', null], body)
  }
  t.strictSame(await answerOf(await decode(url, { vin }, { cookie: '' })), [401, 'actor-missing', null])
  t.strictSame(await answerOf(await decode(url, { vin }, { 'idempotency-key': '"' })), [400, 'key-malformed', null])
  t.strictSame(await answerOf(await decode(url, { vin })), [200, 'HONDA', null])
  t.strictSame(await answerOf(await decode(url, { vin: '1FTMW1T88MFA00001' })), [422, 'payload-mismatch', null])
  const other = await decode(url, { vin: 'U5YH2519LKL016670' }, { cookie: 'visitor=another-one' })
  t.strictSame(await answerOf(other), [404, 'unknown-vehicle', null], 'the key of another visitor is another key')
  t.match(await counters(url), { http: { upstream: 2 }, vin: { vpic_calls: 2 } })
  t.equal((await fetch(`${url}api/decode`)).status, 405)
  t.equal((await fetch(`${url}server.ts`)).status, 404)
})

t.test('the page: names the visitor once, and lets nothing in from elsewhere', async (t) => {
  const { url } = await start(t, await folder(t))
  const page = await fetch(url)
  t.match(page.headers.get('set-cookie'), /^visitor=[\w-]{36}; Path=\/; HttpOnly; SameSite=Strict$/)
  t.match(page.headers.get('content-security-policy'), "default-src 'none'")
  const again = await fetch(url, { headers: { cookie: 'other=1; visitor=somebody' } })
  t.equal(again.headers.get('set-cookie'), null)
  const client = await fetch(`${url}askonce-client.js`)
  t.match(client.headers.get('content-type'), 'text/javascript')
  t.match(await client.text(), 'sendAttempt')
})

t.test('what is wrong on the command line is said in words', async (t) => {
  const wrong: [string[], RegExp][] = [
    [['--bogus'], /--bogus/],
    [['--port', '65536'], /--port is a whole number from 0 to 65535, not 65536/],
    [['--port', '-1'], /--port/],
    [['--latency', '1.5'], /--latency is a whole number from 0 to 60000/],
    [['--live', '--latency', '1'], /--latency is for the stand-in/],
    [['x'], /x/],
  ]
  for (const [args, words] of wrong) {
    t.throws(() => readOptions(args, '/tmp/x'), { name: 'UsageError', message: words }, args.join(' '))
  }
  t.strictSame(readOptions([], '/tmp/x'), { live: false, port: 8080, latencyMs: 2_000, dir: '/tmp/x' })
  t.equal(readOptions(['--help'], '/tmp/x'), null)

  const taken = createServer()
  taken.listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const child = run(t, ['--port', String((taken.address() as AddressInfo).port)])
  let complaint = ''
  child.stderr!.on('data', (chunk) => {
    complaint += chunk
  })
  const [code] = await once(child, 'close')
  t.equal(code, 2)
  t.match(complaint, /^example:decode: port \d+ can't be had: EADDRINUSE\n/)
  t.notMatch(complaint, /\n\s+at /, 'no stack')
})
