/**
 * One Redis command on a connection of its own, without a client library: what the rig needs to look after its servers.
 *
 * @module
 */

import { connect } from 'node:net'

/** A reply: text, number, nothing, or a list of those. */
export type Reply = string | number | null | Reply[]

/** Where to, as whom, and how long to wait. */
export interface CallTarget {
  readonly port: number
  readonly password?: string | undefined
  readonly timeoutMs?: number
}

/** Sends a command to 127.0.0.1 and answers its reply; rejects with the server's error, or when the time is up. */
export function call(target: CallTarget, ...args: readonly (string | number)[]): Promise<Reply> {
  const { port, password, timeoutMs = 2_000 } = target
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' })
    let received = Buffer.alloc(0)
    let skip = password === undefined ? 0 : 1
    const end = (finish: () => void): void => {
      clearTimeout(timer)
      socket.destroy()
      finish()
    }
    const timer = setTimeout(
      () => end(() => reject(new Error(`${args[0]} on port ${port}: no reply in ${timeoutMs} ms`))),
      timeoutMs,
    )
    socket.on('error', (error) => end(() => reject(error)))
    socket.on('close', () => end(() => reject(new Error(`${args[0]} on port ${port}: connection closed`))))
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      for (;;) {
        const parsed = parse(received, 0)
        if (parsed === null) return
        received = received.subarray(parsed.end)
        const { value } = parsed
        if (value instanceof Error) return end(() => reject(value))
        if (skip-- > 0) continue
        return end(() => resolve(value))
      }
    })
    if (password !== undefined) socket.write(encode(['AUTH', password]))
    socket.write(encode(args))
  })
}

function encode(args: readonly (string | number)[]): string {
  return `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(String(arg))}\r\n${arg}\r\n`).join('')}`
}

function parse(data: Buffer, start: number): { value: Reply | Error; end: number } | null {
  const lineEnd = data.indexOf('\r\n', start)
  if (lineEnd === -1) return null
  const line = data.toString('utf8', start + 1, lineEnd)
  let end = lineEnd + 2
  switch (data[start]) {
    case 0x2b: // +
      return { value: line, end }
    case 0x2d: // -
      return { value: new Error(line), end }
    case 0x3a: // :
      return { value: Number(line), end }
    case 0x24: {
      // $
      const length = Number(line)
      if (length === -1) return { value: null, end }
      if (data.length < end + length + 2) return null
      return { value: data.toString('utf8', end, end + length), end: end + length + 2 }
    }
    case 0x2a: {
      // *
      const items: Reply[] = []
      for (let i = 0; i < Number(line); i++) {
        const item = parse(data, end)
        if (item === null) return null
        if (item.value instanceof Error) return item
        items.push(item.value)
        end = item.end
      }
      return { value: items, end }
    }
    default:
      return { value: new Error(`not a Redis reply: byte ${data[start]}`), end }
  }
}
