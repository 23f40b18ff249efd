import { ExpectedFailure } from '../../../src/platform/expected-failure.ts'
import { Part } from '../servers/part.ts'
import { type Host, lastLines } from '../servers/processes/process.ts'
import { type PayoutdOptions, payoutd } from './payoutd-process.ts'

/** payoutd while its installation is up. */
export class PayoutdPart extends Part {
  readonly logFile: string
  /** Rejects when payoutd ends without being asked to; the message is for a person. Never resolves. */
  readonly unexpectedEnd: Promise<never>

  constructor(options: PayoutdOptions, host: Host) {
    const { promise, reject } = Promise.withResolvers<never>()
    // A caller need not listen.
    promise.catch(() => undefined)
    super(payoutd(options, host), (_, how) => void lost(how, options.logFile).then(reject))
    this.logFile = options.logFile
    this.unexpectedEnd = promise
  }
}

async function lost(how: string, logFile: string): Promise<ExpectedFailure> {
  return new ExpectedFailure(`payoutd ${how}. Its log, ${logFile}, ends with:\n${await lastLines(logFile)}`)
}
