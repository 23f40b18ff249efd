import { EXIT } from './outcome.ts'

/**
 * Runs `work`, which may leave something behind at the gateway. On Ctrl-C or SIGTERM meanwhile it calls `tellOf` to print what is
 * not known now, and ends the process with exit code 2.
 */
export async function interruptible<T>(tellOf: () => void, work: () => Promise<T>): Promise<T> {
  const end = () => {
    tellOf()
    process.exit(EXIT.unknown)
  }
  process.once('SIGINT', end).once('SIGTERM', end)
  try {
    return await work()
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end)
  }
}
