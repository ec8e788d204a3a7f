/**
 * What `npm test` has a test process begin with, beside `preload.mjs`: so that its exit code can be trusted, and that it outlives
 * neither a signal nor its runner. The number of the runner's process is in the query; a process that this one forks, and a thread,
 * inherit the option but have another parent.
 */
import { constants } from 'node:os'
import { relative } from 'node:path'
import { isMainThread } from 'node:worker_threads'

const runner = Number(new URL(import.meta.url).searchParams.get('runner'))
if (isMainThread && process.ppid === runner) {
  judgeAtExit()
  endOnSignals()
  process.on('disconnect', () => process.exit(1))
  // To listen is not to wait.
  process.channel?.unref()
}

/**
 * An exit code of 0 is for who has ended well: tap sets one of 1 before the last of what can go wrong, and its package signal-exit
 * sets 0 over the code that Node gives to a throw at exit.
 */
function judgeAtExit() {
  const { emit, reallyExit } = process
  process.emit = function (event, ...args) {
    if (event !== 'exit') return emit.call(this, event, ...args)
    let faults = ['it threw at its exit']
    try {
      const heard = emit.call(this, event, ...args)
      faults = faultsAtExit()
      return heard
    } finally {
      if (faults.length > 0 && !process.exitCode) {
        process.exitCode = 1
        for (const fault of faults) console.error(`# ${relative('', process.argv[1])}: ${fault}`)
      }
    }
  }
  // For who ends the process in its last listener.
  process.reallyExit = function (code) {
    return reallyExit.call(this, code || (faultsAtExit().length > 0 ? 1 : 0))
  }
}

/** What there is against this process, once all who listen for its exit have been heard. */
function faultsAtExit() {
  const faults = []
  // So tap keeps its root, for who loads it twice; what comes after the end it notes there, and nowhere else.
  const results = globalThis[Symbol.for('TAP private constructor')]?.results
  if (results === undefined) faults.push('tap has not come to its end')
  else if (!results.ok) faults.push('tap has seen it fail')
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    if (process.listenerCount(event) > 0) faults.push(`a listener of ${event} was left, which may have hidden an error`)
  }
  if (process.hasUncaughtExceptionCaptureCallback())
    faults.push('a capture callback was left, which may have hidden an error')
  return faults
}

/** A signal ends the process as an exit does, so that it leaves nothing behind. */
function endOnSignals() {
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]))
  }
}
