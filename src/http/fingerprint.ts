/**
 * The content of a request as one digest: what tells a retry from another request under the same key.
 *
 * @module
 */

import { contentId } from '../key.ts'
import { toBase64 } from './bytes.ts'

/**
 * A digest of method, path, query and body. Not of the origin, which differs from server to server, nor of headers, which
 * differ from try to try. The body counts by its bytes: a retry sends the same ones, and two JSON texts that one parser reads
 * alike another may not.
 */
export async function contentFingerprint(method: string, url: URL, body: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', body))
  return contentId('askonce/http request', 1, [method, url.pathname, url.search, toBase64(digest)])
}
