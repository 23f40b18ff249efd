import { type LogEntry, logLevel } from 'kafkajs'
import type { Logger } from '../../log.ts'

/**
 * What KafkaJS reports as an error or a warning although it handles it (whenever a broker or a group starts), or
 * although its caller reports it too.
 */
const ROUTINE =
  /rebalanc|re-joining|coordinator|Response without match|Offset out of range|Failed to connect to|^Crash:/i

/**
 * Sends KafkaJS's reports to our log. None is an error here: when KafkaJS gives up, its caller gets an exception
 * and logs it. While a broker is away, KafkaJS writes many `Connection` lines a second.
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
