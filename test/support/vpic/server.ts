/**
 * A stand-in for NHTSA's vPIC on 127.0.0.1: the endpoints the preset uses and the one it doesn't, with the real one's habits
 * and, on demand, its faults.
 *
 * @module
 */

import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { flatRow, variableRows } from './answer.ts'
import type { Fault, FaultPlan } from './faults.ts'

/** What can be set on a stand-in. */
export interface StandInOptions {
  /** Added to every answer, ms. Default: 0. */
  readonly latencyMs?: number
  /** Decides for calls that no scripted fault is left for. */
  readonly faults?: FaultPlan
  /** VINs in one batch call. Default: 50. */
  readonly batchMax?: number
}

/** One call as it came. */
export interface SeenCall {
  readonly endpoint: string
  readonly vins: readonly string[]
  readonly body: string
  readonly fault: Fault['kind'] | null
  readonly status: number
}

interface Question {
  readonly endpoint: string
  readonly batch: boolean
  readonly json: boolean
  readonly items: readonly { readonly vin: string; readonly year: number | null }[]
  readonly body: string
}

const bodyBytesMax = 64 * 1024

/** A running stand-in. Made by {@link startVpic}. */
export class VpicStandIn {
  /** Calls in the order they came. */
  readonly calls: SeenCall[] = []
  readonly #server: Server
  readonly #options: StandInOptions
  readonly #script: Fault[] = []
  readonly #byVin = new Map<string, Fault>()
  readonly #silent = new Set<ServerResponse>()
  #running = 0
  /** Most calls that ran at once. */
  runningMax = 0

  constructor(options: StandInOptions) {
    this.#options = options
    this.#server = createServer((request, response) => void this.#serve(request, response))
  }

  /** What a client's `baseUrl` is to be. */
  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/api/vehicles/`
  }

  /** VINs asked for, each time one was. */
  get vinsAsked(): string[] {
    return this.calls.flatMap(({ vins }) => vins)
  }

  /** The next calls suffer these, one each. */
  script(...faults: Fault[]): void {
    this.#script.push(...faults)
  }

  /** Every call that asks for the VIN suffers this, until told null. */
  faultFor(vin: string, fault: Fault | null): void {
    if (fault === null) this.#byVin.delete(vin)
    else this.#byVin.set(vin, fault)
  }

  async listen(): Promise<this> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return this
  }

  async close(): Promise<void> {
    for (const response of this.#silent) response.destroy()
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {})
    this.#running++
    this.runningMax = Math.max(this.runningMax, this.#running)
    try {
      const question = questionOf(request, await readBody(request), this.#options.batchMax ?? 50)
      if (typeof question === 'number') this.#refuse(request, response, question)
      else await this.#answer(question, response)
    } catch {
      response.destroy()
    } finally {
      this.#running--
    }
  }

  #refuse(request: IncomingMessage, response: ServerResponse, status: number): void {
    const endpoint = endpointOf(request).name
    this.calls.push({ endpoint, vins: [], body: '', fault: null, status })
    send(response, status, 'application/json', JSON.stringify({ Message: `refused with ${status}` }))
  }

  async #answer(question: Question, response: ServerResponse): Promise<void> {
    const vins = question.items.map(({ vin }) => vin.trim().toUpperCase())
    const fault = this.#faultOf(question, vins)
    const { endpoint, body } = question
    const call = { endpoint, vins, body, fault: fault?.kind ?? null, status: statusOf(fault) }
    this.calls.push(call)
    const latencyMs = (this.#options.latencyMs ?? 0) + (fault?.kind === 'latency' ? fault.ms : 0)
    if (latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, latencyMs))
    if (fault?.kind === 'silence') {
      this.#silent.add(response)
      response.on('close', () => this.#silent.delete(response))
      return
    }
    sendAnswer(response, question, vins, fault)
  }

  #faultOf(question: Question, vins: readonly string[]): Fault | null {
    for (const vin of vins) {
      const fault = this.#byVin.get(vin)
      if (fault !== undefined) return fault
    }
    const scripted = this.#script.shift()
    if (scripted !== undefined) return scripted
    return this.#options.faults?.({ number: this.calls.length + 1, batch: question.batch, vins }) ?? null
  }
}

/** Starts one on a free port. */
export function startVpic(options: StandInOptions = {}): Promise<VpicStandIn> {
  return new VpicStandIn(options).listen()
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes <= bodyBytesMax) chunks.push(chunk)
  }
  return bytes > bodyBytesMax ? '\0too large' : Buffer.concat(chunks).toString()
}

function endpointOf(request: IncomingMessage): { name: string; rest: string; query: URLSearchParams } {
  const url = new URL(request.url ?? '/', 'http://stand-in')
  const match = /^\/api\/vehicles\/([a-z]+)\/?(.*)$/i.exec(url.pathname)
  const query = withLowerNames(url.searchParams)
  return { name: (match?.[1] ?? '').toLowerCase(), rest: match?.[2] ?? '', query }
}

function withLowerNames(values: URLSearchParams): URLSearchParams {
  const lower = new URLSearchParams()
  for (const [name, value] of values) lower.append(name.toLowerCase(), value)
  return lower
}

/** What is asked, or the status it is refused with. */
function questionOf(request: IncomingMessage, body: string, batchMax: number): Question | number {
  const { name, rest, query } = endpointOf(request)
  if (name === 'decodevinvaluesbatch') {
    if (request.method !== 'POST') return 405
    return batchOf(body, batchMax)
  }
  if (!['decodevinvalues', 'decodevinvaluesextended', 'decodevin', 'decodevinextended'].includes(name)) return 404
  if (request.method !== 'GET') return 405
  if ((request.url ?? '').length > 2_048) return 414
  const vin = decodeURIComponent(rest)
  if (vin === '' || vin.includes('/')) return 404
  const year = yearOf(query.get('modelyear') ?? '')
  if (year === undefined) return 400
  return { endpoint: name, batch: false, json: query.get('format') === 'json', items: [{ vin, year }], body }
}

function batchOf(body: string, batchMax: number): Question | number {
  if (body === '\0too large') return 413
  // Values of a form are to be escaped.
  if (!/^[A-Za-z0-9*._+%=&-]*$/.test(body)) return 400
  const form = withLowerNames(new URLSearchParams(body))
  const items: { vin: string; year: number | null }[] = []
  for (const part of (form.get('data') ?? '').split(';')) {
    if (part.trim() === '') continue
    const [vin = '', yearText = '', ...others] = part.split(',')
    const year = yearOf(yearText)
    if (year === undefined || others.length > 0) return 400
    items.push({ vin, year })
  }
  if (items.length === 0 || items.length > batchMax) return 400
  // `format` in the query string is not heeded here: the answer is XML.
  const json = form.get('format')?.toLowerCase() === 'json'
  return { endpoint: 'decodevinvaluesbatch', batch: true, json, items, body }
}

function yearOf(text: string): number | null | undefined {
  if (text.trim() === '') return null
  return /^\d{4}$/.test(text.trim()) ? Number(text) : undefined
}

function statusOf(fault: Fault | null): number {
  if (fault?.kind === 'status') return fault.status
  if (fault?.kind === 'throttle') return 429
  if (fault?.kind === 'ban') return 403
  return fault?.kind === 'gateway_timeout' ? 504 : 200
}

function sendAnswer(response: ServerResponse, question: Question, vins: readonly string[], fault: Fault | null): void {
  const status = statusOf(fault)
  if (fault?.kind === 'reset') {
    if (fault.halfway === true) {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '10000' })
      response.write('{"Count":1,"Results":[', () => response.destroy())
    } else {
      response.destroy()
    }
  } else if (status !== 200) {
    sendFailure(response, status, fault)
  } else if (fault?.kind === 'xml' || !question.json) {
    const xml = '<?xml version="1.0"?><Response><Count>1</Count><Results></Results></Response>'
    send(response, 200, 'application/xml; charset=utf-8', xml)
  } else if (fault?.kind === 'html') {
    send(response, 200, 'text/html', '<!DOCTYPE html><html><body>Maintenance</body></html>')
  } else {
    const text = JSON.stringify(envelopeOf(question, vins, fault))
    const body = fault?.kind === 'broken_json' ? text.slice(0, Math.floor(text.length / 2)) : text
    send(response, 200, 'application/json; charset=utf-8', body)
  }
}

function sendFailure(response: ServerResponse, status: number, fault: Fault | null): void {
  const retryAfter = fault !== null && 'retryAfter' in fault ? fault.retryAfter : undefined
  const json = fault?.kind === 'throttle' || (fault?.kind === 'status' && fault.body !== 'html')
  const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter }
  const body = json ? '{"Message":"No"}' : `<html><head><title>${status}</title></head><body>${status}</body></html>`
  send(response, status, json ? 'application/json' : 'text/html', body, headers)
}

function envelopeOf(question: Question, vins: readonly string[], fault: Fault | null): object {
  if (fault?.kind === 'execution_error') {
    return { Count: 0, Message: 'Execution Error', SearchCriteria: null, Results: [] }
  }
  const rows = fault?.kind === 'empty_results' ? [] : rowsOf(question, vins, fault)
  return {
    // Not to be believed, as the real one's.
    Count: question.batch ? rows.length : 136,
    Message:
      'Results returned successfully. NOTE: Any missing decoded values should be interpreted as NHTSA does not have data.',
    SearchCriteria: question.batch ? '' : `VIN:${vins[0]}`,
    Results: rows,
  }
}

function rowsOf(question: Question, vins: readonly string[], fault: Fault | null): Record<string, unknown>[] {
  const [first] = question.items
  if (!question.endpoint.includes('values')) return variableRows(first?.vin ?? '', first?.year ?? null)
  const rows = question.items.map(({ vin, year }) => flatRow(vin, year))
  const named = (row: Record<string, string>): boolean => {
    const chosen = (fault as { vins?: readonly string[] } | null)?.vins ?? vins.slice(0, 1)
    return chosen.includes(row['VIN'] ?? '')
  }
  if (fault?.kind === 'missing') return rows.filter((row) => !named(row))
  if (fault?.kind === 'doubled') return rows.flatMap((row) => (named(row) ? [row, { ...row, Make: 'OTHER' }] : [row]))
  return fault?.kind === 'reversed' ? rows.reverse() : rows
}

function send(response: ServerResponse, status: number, type: string, body: string, headers: object = {}): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body), ...headers })
  response.end(body)
}
