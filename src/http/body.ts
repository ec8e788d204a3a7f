/**
 * Bodies, read whole and within a bound.
 *
 * @module
 */

/** What came of reading. */
export type ReadBody =
  | { readonly ok: true; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly ok: false; readonly problem: 'too-large' | 'unreadable' }

/**
 * Reads a body, or stops at the first byte beyond `bytesMax`. A body that is refused is left where it is, not cancelled: who
 * cancels the stream of a request ends its connection before the answer is sent.
 */
export async function readBody(message: Request | Response, bytesMax: number): Promise<ReadBody> {
  if (message.bodyUsed || message.body?.locked === true) return { ok: false, problem: 'unreadable' }
  // What is announced too large isn't read at all; what is announced wrongly is counted.
  const announced = message.headers.get('content-length')
  if (announced !== null && /^\d+$/.test(announced) && Number(announced) > bytesMax) {
    return { ok: false, problem: 'too-large' }
  }
  if (message.body === null) return { ok: true, bytes: new Uint8Array() }
  const chunks: Uint8Array[] = []
  let total = 0
  const reader = message.body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      total += (value as Uint8Array).byteLength
      if (total > bytesMax) return { ok: false, problem: 'too-large' }
      chunks.push(value as Uint8Array)
    }
  } catch {
    return { ok: false, problem: 'unreadable' }
  } finally {
    reader.releaseLock()
  }
  return { ok: true, bytes: joined(chunks, total) }
}

function joined(chunks: readonly Uint8Array[], total: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(total)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.byteLength
  }
  return bytes
}
