import { type LogEntry, logLevel } from 'kafkajs'
import type { Logger } from '../../log.ts'

/**
 * What KafkaJS reports as an error or a warning although it deals with it by itself (whenever a broker or a
 * group starts), or although its caller reports it too.
 */
const ROUTINE =
  /rebalanc|re-joining|coordinator|Response without match|Offset out of range|Failed to connect to|^Crash:/i

/**
 * KafkaJS reports to our log. Nothing of it is an error here: what it gives up on reaches its caller as an
 * exception, and is logged there. `Connection` lines come many a second while a broker is away.
 */
export const logCreator =
  (log: Logger) =>
  () =>
  ({ namespace, level, log: { message, error } }: LogEntry): void => {
    const cause = typeof error === 'string' ? error : undefined
    const line = { kafkajs: namespace, cause }
    const routine = namespace === 'Connection' || ROUTINE.test(message) || ROUTINE.test(cause ?? '')
    if (level <= logLevel.WARN && !routine) log.warn(line, message)
    else log.debug(line, message)
  }
