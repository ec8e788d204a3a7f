/**
 * Who asks. This page has no accounts: a cookie that scripts can't read tells visitors apart, so that no visitor's key
 * answers with another's answer. Yours will know its users better.
 *
 * @module
 */

import { randomUUID } from 'node:crypto'

const cookie = /(?:^|;\s*)visitor=([\w-]{8,64})(?:;|$)/

/** The visitor's name; null for who never loaded the page. */
export function actorOf(request: Request): string | null {
  return cookie.exec(request.headers.get('cookie') ?? '')?.[1] ?? null
}

/** Names a visitor who has no name yet. */
export function withVisitor(request: Request, response: Response): Response {
  if (actorOf(request) === null) {
    response.headers.append('set-cookie', `visitor=${randomUUID()}; Path=/; HttpOnly; SameSite=Strict`)
  }
  return response
}
