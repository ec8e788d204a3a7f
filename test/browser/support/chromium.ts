/**
 * A real browser for tests: Debian's Chromium by way of playwright-core, with a profile of its own in a temporary folder.
 *
 * @module
 */

import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium } from 'playwright-core'

/** How long anything in a browser may take, ms: a loaded machine is no fault of the page. */
const actionMsMax = 20_000

/** A browser with one profile. `close` ends it and removes the profile. */
export interface Browser {
  readonly context: BrowserContext
  close(): Promise<void>
}

/** Starts one. */
export async function startBrowser(executablePath: string): Promise<Browser> {
  const profile = await mkdtemp(join(tmpdir(), 'askonce-chromium-'))
  const remove = () => rm(profile, { recursive: true, force: true, maxRetries: 5 })
  // For a test that ends without its end: the browser itself is ended by playwright.
  process.once('exit', () => rmSync(profile, { recursive: true, force: true }))
  // Chromium refuses to run as root with its sandbox.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  try {
    const context = await chromium.launchPersistentContext(profile, {
      executablePath,
      headless: true,
      // In a container /dev/shm is often too small.
      args: [...args, '--disable-dev-shm-usage'],
      timeout: 60_000,
    })
    context.setDefaultTimeout(actionMsMax)
    return { context, close: () => context.close().finally(remove) }
  } catch (error) {
    await remove()
    throw error
  }
}
