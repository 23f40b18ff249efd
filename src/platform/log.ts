import { type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino'
import { visibleJson } from '../text/text.ts'
import { Lines } from './lines.ts'

export type Logger = Pick<PinoLogger, 'debug' | 'info' | 'warn' | 'error' | 'fatal'> & {
  child(bindings: Record<string, unknown>): Logger
}

/**
 * Fields that must never be printed. Callers log only identifiers and masked values; this list is a safety net, not
 * the rule.
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

/**
 * Writes one JSON object per line, in visible characters, to stdout (or to `destination`: 2 is stderr, so that
 * stdout stays free for results).
 */
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
    new Lines(options.destination ?? 1, (lines) =>
      log.warn({ lines }, 'lines of this log were dropped because they could not be written'),
    ),
  )
  return log
}

export const silentLogger: Logger = pino({ level: 'silent' })
