/**
 * The example's page in a real browser: clicked twice, reloaded, taken off line. One question to the decoder, one answer
 * shown.
 */

import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import type { DecodeAppOptions } from '../../docs/examples/decode-server/app.ts'
import { type Browser, startBrowser } from './support/chromium.ts'
import { DecodeRig } from './support/decode-rig.ts'
import { ensureChromium, skippedForBrowser } from './support/ensure-chromium.ts'

const vin = '1HGCM82633A004352'
const decoded = `2003 HONDA Accord\n${vin}`

// Run alone; under the runner its own time-out holds, which is why `npm test` installs the browser beforehand.
t.setTimeout(600_000)
const executablePath = ensureChromium((line) => t.comment(line))

if (executablePath === null) {
  if (process.env['CI'] === 'true') t.fail(`with CI=true that is a failure: ${skippedForBrowser}`)
  else t.test('the page in a real browser', { skip: skippedForBrowser }, async () => {})
} else {
  await inBrowser(await startBrowser(executablePath))
}

async function inBrowser(browser: Browser): Promise<void> {
  t.teardown(() => browser.close())

  /** A server and a page of its own for each test. */
  async function open(t: Test, options: Partial<DecodeAppOptions> = {}): Promise<{ rig: DecodeRig; page: Page }> {
    const rig = await DecodeRig.start(options)
    t.teardown(() => rig.close())
    const page = await browser.context.newPage()
    t.teardown(async () => {
      await browser.context.setOffline(false)
      await page.close()
    })
    page.on('pageerror', (error) => t.fail(`the page’s script failed: ${error.message}`))
    await page.goto(rig.url)
    return { rig, page }
  }

  /** Waits until the page shows an answer of the kind, and answers its words. */
  async function shown(page: Page, kind: string): Promise<string> {
    const answer = page.locator(`#answer[data-kind="${kind}"]`)
    await answer.waitFor()
    return (await answer.textContent()) ?? ''
  }

  const decodeButton = (page: Page) => page.getByRole('button', { name: 'Decode' })

  async function ask(page: Page, text = vin): Promise<void> {
    await page.getByLabel('Vehicle identification number').fill(text)
    await decodeButton(page).click()
  }

  /** What the tab keeps of attempts; null for nothing. */
  const kept = (page: Page) => page.evaluate<string | null>("sessionStorage.getItem('askonce.attempts')")

  async function onlyTheTabRemembers(t: Test, page: Page): Promise<void> {
    t.equal(await page.evaluate('localStorage.length'), 0, 'nothing in localStorage')
  }

  t.test('a double click: two requests with one key, one question, one answer', async (t) => {
    const { rig, page } = await open(t)
    rig.hold()
    await page.getByLabel('Vehicle identification number').fill(vin.toLowerCase())
    await decodeButton(page).dblclick()
    await rig.asked(2)
    t.equal(await shown(page, 'busy'), 'Asking…')
    t.match(await kept(page), vin)
    rig.release()
    t.equal(await shown(page, 'decoded'), decoded)
    await rig.answered(2)
    t.equal(rig.posts.length, 2)
    t.equal(rig.keys.length, 1, 'one key')
    t.match(rig.keys[0], /^"[\da-f-]{36}"$/)
    t.equal(rig.upstreamCalls, 1, 'one question')
    t.equal(rig.posts.filter(({ replayed }) => replayed).length, 1, 'one of the answers is the other’s')
    await page.waitForFunction("sessionStorage.getItem('askonce.attempts') === null")
    await onlyTheTabRemembers(t, page)

    await decodeButton(page).click()
    await rig.answered(3)
    t.equal(rig.keys.length, 2, 'a later click is another intent')
  })

  t.test('a reload in the middle: the page comes back to its own question', async (t) => {
    const { rig, page } = await open(t)
    rig.hold()
    await ask(page)
    await rig.calling(1)
    const before = await kept(page)
    await page.reload()
    await rig.asked(2)
    t.equal(await kept(page), before)
    t.equal(await page.getByLabel('Vehicle identification number').inputValue(), vin)
    rig.release()
    t.equal(await shown(page, 'decoded'), decoded)
    t.strictSame([rig.posts.length, rig.keys.length, rig.upstreamCalls], [2, 1, 1])
    await page.reload()
    t.equal(await page.locator('#answer').getAttribute('data-kind'), 'none', 'answered: nothing is asked again')
    t.equal(rig.posts.length, 2)
  })

  t.test('another tab is another intent', async (t) => {
    const { rig, page } = await open(t)
    await ask(page)
    await shown(page, 'decoded')
    const other = await browser.context.newPage()
    t.teardown(() => other.close())
    await other.goto(rig.url)
    await ask(other)
    t.equal(await shown(other, 'decoded'), decoded)
    t.equal(rig.keys.length, 2)
    t.equal(rig.upstreamCalls, 1, 'the VIN itself is known by now')
  })

  t.test('off line at the click, then on line: asked once, as soon as there is a network', async (t) => {
    const { rig, page } = await open(t)
    await browser.context.setOffline(true)
    await ask(page)
    t.match(await shown(page, 'offline'), 'You are off line')
    t.equal(rig.posts.length, 0)
    await browser.context.setOffline(false)
    t.equal(await shown(page, 'decoded'), decoded)
    t.strictSame([rig.posts.length, rig.upstreamCalls], [1, 1])
  })

  t.test('off line in mid-call: the answer is fetched, not asked for again', async (t) => {
    const { rig, page } = await open(t)
    rig.hold()
    await ask(page)
    await rig.calling(1)
    await browser.context.setOffline(true)
    rig.cutOff('lasting')
    t.match(await shown(page, 'offline'), 'You are off line')
    // Nobody hears this answer.
    rig.release()
    await rig.answered(1)
    rig.reconnect()
    await browser.context.setOffline(false)
    t.equal(await shown(page, 'decoded'), decoded)
    t.strictSame([rig.posts.length, rig.keys.length, rig.upstreamCalls], [2, 1, 1])
    t.equal(rig.posts[1]?.replayed, true)
  })

  t.test('a connection that breaks on line: the same key again, one question', async (t) => {
    const { rig, page } = await open(t)
    rig.hold()
    await ask(page)
    await rig.calling(1)
    rig.cutOff('once')
    await rig.asked(2)
    rig.release()
    t.equal(await shown(page, 'decoded'), decoded)
    t.strictSame([rig.keys.length, rig.upstreamCalls], [1, 1])
  })

  t.test('busy: said so while it lasts, then the answer', async (t) => {
    // Long enough for the first request to get its lease, which else the second gets, and nobody is told to wait.
    const { rig, page } = await open(t, { waitMs: 500 })
    rig.hold()
    await decodeTwice(page)
    await page.getByText('still busy with your question').waitFor()
    rig.release()
    t.equal(await shown(page, 'decoded'), decoded)
    t.strictSame([rig.keys.length, rig.upstreamCalls], [1, 1])
    t.ok(rig.posts.some(({ status }) => status === 409))
  })

  async function decodeTwice(page: Page): Promise<void> {
    await page.getByLabel('Vehicle identification number').fill(vin)
    await decodeButton(page).dblclick()
  }

  t.test('no VIN: said so, with what was wrong and what may have been meant; nobody is asked', async (t) => {
    const { rig, page } = await open(t)
    await ask(page, '1HGCM82633A00435O')
    const words = await shown(page, 'invalid')
    t.match(words, 'This is not a VIN: position 17 is O')
    t.match(words, 'Was it meant to be 1HGCM82633A004350?')
    t.strictSame([rig.upstreamCalls, rig.posts.length, rig.posts[0]?.status], [0, 1, 422])
    t.equal(await kept(page), null)
    await ask(page)
    t.equal(await shown(page, 'decoded'), decoded, 'put right, it is another question')
    t.equal(rig.keys.length, 2)
  })

  t.test('a vehicle that nothing is known of is no invalid VIN', async (t) => {
    const { rig, page } = await open(t)
    await ask(page, 'U5YH2519LKL016670')
    t.match(await shown(page, 'unknown'), 'Nothing is known of this vehicle')
    t.equal(rig.upstreamCalls, 1)
  })

  t.test('unavailable: one question, one honest answer; the same click again when it is back', async (t) => {
    const { rig, page } = await open(t, { failureTtlMs: 1 })
    rig.standIn.faultFor(vin, { kind: 'gateway_timeout' })
    await ask(page)
    t.match(await shown(page, 'unavailable'), /^The decoder is temporarily unavailable. Please try again in \d+ s.$/)
    t.strictSame([rig.posts.length, rig.upstreamCalls, rig.posts[0]?.status], [1, 1, 503])
    rig.standIn.faultFor(vin, null)
    await decodeButton(page).click()
    t.equal(await shown(page, 'decoded'), decoded)
    t.strictSame([rig.keys.length, rig.upstreamCalls], [1, 2])
  })

  t.test('cancelled: forgotten at once, and the next click is a new question', async (t) => {
    const { rig, page } = await open(t)
    rig.hold()
    await ask(page)
    await rig.calling(1)
    await page.getByRole('button', { name: 'Cancel' }).click()
    t.equal(await shown(page, 'cancelled'), 'Cancelled.')
    t.equal(await kept(page), null)
    rig.release()
    await decodeButton(page).click()
    t.equal(await shown(page, 'decoded'), decoded)
    t.strictSame([rig.keys.length, rig.upstreamCalls], [2, 1])
  })

  t.test('nobody listens: said so; the attempt stays for the next click', async (t) => {
    const { rig, page } = await open(t)
    await rig.shutDown()
    await ask(page)
    t.match(await shown(page, 'unreachable'), 'can’t be reached')
    t.match(await kept(page), vin)
  })
}
