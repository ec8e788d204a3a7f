/**
 * Stands in for the package `async-hook-domain`, by which tap finds the test in which something was thrown that nobody caught: it
 * follows every promise of the process by a hook, which takes up to half of the time of tests like ours. Here such an error fails
 * the file as a whole; its stack says where it came from.
 */
const domains = new Set()

export class Domain {
  constructor(onerror) {
    this.onerror = onerror
    domains.add(this)
  }

  destroy() {
    domains.delete(this)
  }
}

process.on('uncaughtExceptionMonitor', (error, origin) => {
  const [outermost] = domains
  // Whoever listens has it, as in the package.
  if (process.hasUncaughtExceptionCaptureCallback() || process.listenerCount('uncaughtException') > 0) return
  if (outermost === undefined) return
  outermost.onerror(error, origin)
  process.setUncaughtExceptionCaptureCallback(() => process.setUncaughtExceptionCaptureCallback(null))
})
