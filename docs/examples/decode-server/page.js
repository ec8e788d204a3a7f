/**
 * The page's script: one attempt for one press of the button, the same after a reload, sent until there is an answer.
 */

import { AttemptError, attemptStore, sendAttempt } from '/askonce-client.js'

const form = document.querySelector('form')
const input = document.querySelector('#vin')
const cancel = document.querySelector('#cancel')
const answer = document.querySelector('#answer')

const store = attemptStore()

/** The call whose answer is shown: the last one begun. */
let shown = 0
let running = new AbortController()

form.addEventListener('submit', (event) => {
  event.preventDefault()
  // As it will be sent: what is typed twice in two ways is one question.
  const vin = input.value.replace(/[\s-]/g, '').toUpperCase()
  decode(store.obtain(vin, { ttlMs: 60_000 }))
})

cancel.addEventListener('click', () => {
  running.abort()
  running = new AbortController()
})

// What this tab was waiting for when it was reloaded.
const [unfinished] = store.pending().slice(-1)
if (unfinished !== undefined) {
  input.value = unfinished.subject
  decode(unfinished)
}

async function decode(attempt) {
  const call = ++shown
  const show = (kind, text) => {
    if (call !== shown) return
    answer.dataset.kind = kind
    answer.textContent = text
    cancel.hidden = kind !== 'busy' && kind !== 'offline'
  }
  show('busy', 'Asking…')
  const { signal } = running
  try {
    // A person is waiting: what asks for more than five seconds is shown as it is.
    const options = { store, signal, retries: 2, retryAfterMaxMs: 5_000, onWait: (wait) => show(...saying(wait)) }
    const response = await sendAttempt(attempt, post, options)
    show(...(await telling(response)))
  } catch (error) {
    show(...explaining(error, signal))
  }
}

function post(headers, { subject }, signal) {
  return fetch('/api/decode', {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({ vin: subject }),
    signal,
  })
}

/** While it lasts. */
function saying({ kind, waitMs }) {
  if (kind === 'offline')
    return ['offline', 'You are off line. The question is sent again as soon as the network is back.']
  if (kind === 'pending') return ['busy', 'The decoder is still busy with your question. No need to ask again.']
  return ['busy', `The decoder did not answer. Trying again in ${Math.ceil(waitMs / 1000)} s.`]
}

/** When there is an answer. */
async function telling(response) {
  const body = await response.json().catch(() => ({}))
  if (response.ok) return ['decoded', `${body.modelYear ?? ''} ${body.make} ${body.model}\n${body.vin}`.trim()]
  if (body.code === 'invalid-input') return ['invalid', `This is not a VIN: ${body.detail}.${suggesting(body)}`]
  if (body.code === 'unknown-vehicle')
    return ['unknown', `Nothing is known of this vehicle: ${body.detail}.${suggesting(body)}`]
  if (response.status >= 500) return ['unavailable', `The decoder is temporarily unavailable. ${later(response)}`]
  return ['refused', `${body.title ?? 'The question was refused'} (${response.status})`]
}

function suggesting({ suggestions = [] }) {
  return suggestions.length === 0 ? '' : `\nWas it meant to be ${suggestions.join(' or ')}?`
}

function later(response) {
  const seconds = response.headers.get('Retry-After')
  return seconds === null ? 'Please try again later.' : `Please try again in ${seconds} s.`
}

/** When there is none. */
function explaining(error, signal) {
  if (signal.aborted) return ['cancelled', 'Cancelled.']
  switch (error instanceof AttemptError ? error.code : '') {
    case 'ASKONCE_ATTEMPT_PENDING':
      return ['busy', 'The decoder is still busy with your question. Ask again in a while.']
    case 'ASKONCE_ATTEMPT_EXPIRED':
      return ['unreachable', 'The decoder could not be reached in time. Please ask again.']
    case 'ASKONCE_NETWORK':
      return ['unreachable', 'The decoder can’t be reached. Please check your connection and ask again.']
    case 'ASKONCE_INVALID_ARGUMENT':
      return ['invalid', 'Please enter a VIN.']
    default:
      return ['refused', 'Something went wrong on this page.']
  }
}
