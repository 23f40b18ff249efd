/** The person who started this wants it to end: not a fault. */
export class Interrupted extends Error {}

/**
 * Turns the first SIGINT, SIGTERM or SIGHUP into an abort, so that everything stops in order. A second one ends
 * this process at once, and the watchdogs end what it leaves.
 */
export function interruption(): AbortSignal {
  const abort = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      console.error(`\n${signal}: stopping`)
      abort.abort(new Interrupted(signal))
    })
  }
  return abort.signal
}

/** Rejects with the signal's reason as soon as it is aborted. Never resolves. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason))
  })
}
