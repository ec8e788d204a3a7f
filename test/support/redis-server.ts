/**
 * Redis servers for tests: each on a free port of 127.0.0.1 in a folder of its own, ended by its own process id. The rig
 * never talks to a server that it didn't start.
 *
 * @module
 */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { onPath } from './program.ts'
import { call, type Reply } from './redis-call.ts'

/** Written into the name of tests that had to be left out; the test command counts them by it. */
export const skippedForRedis = 'no redis-server or valkey-server on the PATH'

/** How a server is started. Nothing is saved to disk unless `appendonly` is set. */
export interface RedisServerOptions {
  readonly appendonly?: boolean
  readonly appendfsync?: 'always' | 'everysec' | 'no'
  readonly cluster?: boolean
  /** As Redis writes it: `100mb`. */
  readonly maxmemory?: string
  /** Also listen on `redis.sock` in the server's folder. */
  readonly unixsocket?: boolean
  /** The default user's password. */
  readonly requirepass?: string
  /** ACL rules, one a user: `alice on >secret ~jobs:* &* +@all`. */
  readonly users?: readonly string[]
  /** Further arguments, as on the command line: `['--hz', '100']`. */
  readonly args?: readonly string[]
}

/** The program: ASKONCE_REDIS_SERVER, or the first of redis-server and valkey-server on the PATH; null if there is none. */
export function redisServerPath(): string | null {
  const named = process.env['ASKONCE_REDIS_SERVER']
  if (named) return named
  return onPath('redis-server', 'valkey-server')
}

/** The version of the program, as [major, minor]. */
function redisServerVersion(path: string): [number, number] {
  const text = execFileSync(path, ['--version'], { encoding: 'utf8' })
  const found = /v=(\d+)\.(\d+)/.exec(text)
  return found === null ? [0, 0] : [Number(found[1]), Number(found[2])]
}

const startMsMax = 20_000
const stopMsMax = 5_000
const attemptsMax = 10

/** A running server, or one that was stopped and can be started again on the same port and folder. */
export class RedisServer {
  readonly port: number
  /** Everything it writes lies here; removed by `dispose`. */
  readonly dir: string
  readonly #options: RedisServerOptions
  readonly #path: string
  #child: ChildProcess | null = null
  #paused = false

  private constructor(path: string, port: number, options: RedisServerOptions) {
    this.#path = path
    this.port = port
    this.#options = options
    this.dir = mkdtempSync(join(tmpdir(), 'askonce-redis-'))
    tidyAtExit(this)
  }

  /** Starts a server and waits until it answers. */
  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const path = redisServerPath()
    if (path === null) throw new Error(skippedForRedis)
    for (let attempt = 1; ; attempt++) {
      const server = new RedisServer(path, await freePort(options.cluster === true), options)
      try {
        await server.start()
        return server
      } catch (error) {
        // Somebody else may have taken the port since it was found free.
        await server.dispose()
        if (attempt === attemptsMax || !(error as Error).message.includes('in use')) throw error
      }
    }
  }

  /** Without credentials. */
  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  get socketPath(): string {
    return join(this.dir, 'redis.sock')
  }

  /** The process id; undefined while it is stopped. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Starts it again after `stop` or `kill`, on the same port and folder. */
  async start(): Promise<void> {
    if (this.#child !== null) throw new Error('the server runs already')
    const [command, args] = dyingWithParent(this.#path, this.#arguments())
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], cwd: this.dir })
    this.#child = child
    this.#paused = false
    let complaint = ''
    child.stderr!.on('data', (chunk) => {
      complaint += chunk
    })
    child.once('error', (error) => {
      complaint += error.message
    })
    child.once('exit', () => {
      if (this.#child === child) this.#child = null
    })
    child.unref()
    ;(child.stderr as unknown as { unref(): void }).unref()
    const end = Date.now() + startMsMax
    for (;;) {
      if (this.#child !== child) throw new Error(`redis-server did not start: ${complaint}${this.#log()}`)
      if (await this.#answers(child)) return
      if (Date.now() > end) {
        await this.kill()
        throw new Error(`redis-server did not answer within ${startMsMax} ms: ${complaint}${this.#log()}`)
      }
      await sleep(20)
    }
  }

  /** Sends one command as the default user; rejects with the server's error. */
  call(...args: readonly (string | number)[]): Promise<Reply> {
    return call({ port: this.port, password: this.#options.requirepass }, ...args)
  }

  /** Ends it in good order (SIGTERM; with an append-only file, nothing is lost), by force if it takes too long. */
  async stop(): Promise<void> {
    if (this.#paused) this.resume()
    await this.#end('SIGTERM')
  }

  /** Ends it with SIGKILL: what the disk does not have is lost. */
  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  /** Ends it and starts it again on the same port and folder. */
  async restart(how: 'stop' | 'kill' = 'stop'): Promise<void> {
    await this[how]()
    await this.start()
  }

  /** Lets it hang (SIGSTOP): connections stay open, nothing is answered. */
  pause(): void {
    this.#child?.kill('SIGSTOP')
    this.#paused = true
  }

  /** Lets it go on (SIGCONT). */
  resume(): void {
    this.#child?.kill('SIGCONT')
    this.#paused = false
  }

  /** Ends it and removes its folder. Doing so twice is harmless. */
  async dispose(): Promise<void> {
    await this.kill()
    rmSync(this.dir, { recursive: true, force: true })
    living.delete(this)
  }

  /** What `dispose` does, without waiting: for the end of the process. */
  disposeNow(): void {
    this.#child?.kill('SIGKILL')
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 3 })
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (child === null || child.pid === undefined) return
    child.ref()
    const ended = once(child, 'exit')
    child.kill(signal)
    const force = setTimeout(() => child.kill('SIGKILL'), stopMsMax)
    await ended
    clearTimeout(force)
  }

  /** Whether the server that answers on the port is this process, and has its data loaded. */
  async #answers(child: ChildProcess): Promise<boolean> {
    try {
      const info = await this.call('INFO')
      return String(info).includes(`process_id:${child.pid}\r`) && String(info).includes('loading:0\r')
    } catch {
      return false
    }
  }

  #arguments(): string[] {
    const { appendonly, appendfsync, cluster, maxmemory, unixsocket, requirepass, users, args } = this.#options
    const list = ['--port', `${this.port}`, '--bind', '127.0.0.1', '--dir', this.dir, '--logfile', 'redis.log']
    list.push('--daemonize', 'no', '--save', '', '--appendonly', appendonly ? 'yes' : 'no')
    if (appendfsync !== undefined) list.push('--appendfsync', appendfsync)
    if (cluster) list.push('--cluster-enabled', 'yes', '--cluster-node-timeout', '3000')
    if (maxmemory !== undefined) list.push('--maxmemory', maxmemory)
    if (unixsocket) list.push('--unixsocket', this.socketPath, '--unixsocketperm', '700')
    if (requirepass !== undefined) list.push('--requirepass', requirepass)
    for (const user of users ?? []) list.push('--user', ...user.split(' '))
    // Before 7 the DEBUG command was open; since then it must be asked for.
    if (redisServerVersion(this.#path)[0] >= 7) list.push('--enable-debug-command', 'local')
    return [...list, ...(args ?? [])]
  }

  #log(): string {
    try {
      return readFileSync(join(this.dir, 'redis.log'), 'utf8').slice(-2_000)
    } catch {
      return ''
    }
  }
}

/** A cluster of masters that share the slots evenly. */
export class RedisCluster {
  readonly nodes: readonly RedisServer[]

  private constructor(nodes: readonly RedisServer[]) {
    this.nodes = nodes
  }

  /** Starts `size` servers (3 at least), joins them, and waits until each sees the whole cluster as well. */
  static async start(size = 3, options: RedisServerOptions = {}): Promise<RedisCluster> {
    const nodes: RedisServer[] = []
    const cluster = new RedisCluster(nodes)
    try {
      for (let i = 0; i < size; i++) nodes.push(await RedisServer.start({ ...options, cluster: true }))
      for (const [i, node] of nodes.entries()) {
        const first = Math.floor((i * 16_384) / size)
        const end = Math.floor(((i + 1) * 16_384) / size)
        await node.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
        // Not ADDSLOTSRANGE, which 6.2 does not know.
        await node.call('CLUSTER', 'ADDSLOTS', ...Array.from({ length: end - first }, (_, slot) => first + slot))
        if (i > 0) await node.call('CLUSTER', 'MEET', '127.0.0.1', nodes[0]!.port)
      }
      await cluster.ready()
      return cluster
    } catch (error) {
      await cluster.dispose()
      throw error
    }
  }

  /** Waits until every node knows every other and calls the cluster ok. */
  async ready(timeoutMs = startMsMax): Promise<void> {
    const end = Date.now() + timeoutMs
    for (const node of this.nodes) {
      for (;;) {
        const info = await node.call('CLUSTER', 'INFO').catch((error: Error) => error.message)
        const text = String(info)
        if (text.includes('cluster_state:ok') && text.includes(`cluster_known_nodes:${this.nodes.length}\r`)) break
        if (Date.now() > end) throw new Error(`the cluster is not ready after ${timeoutMs} ms: ${text}`)
        await sleep(50)
      }
    }
  }

  /** Host and port of each node, as ioredis takes them. */
  get addresses(): { host: string; port: number }[] {
    return this.nodes.map(({ port }) => ({ host: '127.0.0.1', port }))
  }

  /** Ends every node and removes its folder. */
  async dispose(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.dispose()))
  }
}

/** A port that nobody listens on now; with `bus`, neither on the one 10,000 above, where cluster nodes talk. */
async function freePort(bus: boolean): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = 15_000 + Math.floor(Math.random() * 15_000)
    if ((await isFree(port)) && (!bus || (await isFree(port + 10_000)))) return port
  }
  throw new Error('found no free port on 127.0.0.1 from 15000 to 30000')
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  server.listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}

/** On Linux, has the kernel end the server when this process dies in whatever way. */
function dyingWithParent(path: string, args: readonly string[]): [string, string[]] {
  const setpriv = process.platform === 'linux' ? onPath('setpriv') : null
  return setpriv === null ? [path, [...args]] : [setpriv, ['--pdeathsig', 'KILL', '--', path, ...args]]
}

const living = new Set<RedisServer>()

function tidyAtExit(server: RedisServer): void {
  if (living.size === 0) listenForExit()
  living.add(server)
}

let listening = false

function listenForExit(): void {
  if (listening) return
  listening = true
  const tidy = (): void => {
    for (const server of living) server.disposeNow()
    living.clear()
  }
  process.once('exit', tidy)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      tidy()
      // The listener is gone now: this ends the process as it would have ended without us.
      process.kill(process.pid, signal)
    })
  }
}
