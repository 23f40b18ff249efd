import { type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino'
import { visibleJson } from './text.ts'

export type Logger = Pick<PinoLogger, 'debug' | 'info' | 'warn' | 'error' | 'fatal'> & {
  child(bindings: Record<string, unknown>): Logger
}

/**
 * Fields that must never be printed. Callers log identifiers and masked values only; this list is the
 * net below, not the rule.
 */
const SECRET_FIELDS = [
  'accountNo',
  'ifsc',
  'vpa',
  'extra',
  'key',
  'sign',
  'phoneNumber',
  'payerEmail',
  'accountName',
]

/** One JSON object a line of visible characters on stdout (or to `destination`: 2 is stderr, so that stdout stays for results). */
export function createLogger(options: { level: string; name: string; destination?: 1 | 2 }): Logger {
  const log: Logger = pino(
    {
      name: options.name,
      level: options.level,
      timestamp: stdTimeFunctions.isoTime,
      hooks: { streamWrite: (line) => `${visibleJson(line.trimEnd())}\n` },
      redact: {
        paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
        censor: '***',
      },
    },
    destinationAt(options.destination ?? 1, (lines) =>
      log.warn(
        { lines },
        'so many lines of this log were dropped, as they could not be written: its disk was full',
      ),
    ),
  )
  return log
}

/** So much waits, in bytes, while nothing can be written; what comes then is dropped. */
const MOST_WAITING = 1024 * 1024

/**
 * Lines that cannot be written (the disk is full) end nobody's work: they wait, and the next line tries again, also where it
 * is dropped itself. Left to itself, pino takes that for the end of the process, in which it tries to write them for ever; a
 * process that ends leaves them.
 */
function destinationAt(fd: 1 | 2, onDropped: (lines: number) => void) {
  const destination = pino.destination({ dest: fd, maxLength: MOST_WAITING })
  const flushSync = destination.flushSync.bind(destination)
  destination.on('error', () => {
    destination.flushSync = () => undefined
  })
  let dropped = 0
  destination.on('drop', () => {
    dropped++
    destination.write('')
  })
  destination.on('write', () => {
    destination.flushSync = flushSync
    if (dropped === 0) return
    const lines = dropped
    dropped = 0
    // Behind what waits.
    queueMicrotask(() => onDropped(lines))
  })
  return destination
}

export const silentLogger: Logger = pino({ level: 'silent' })
