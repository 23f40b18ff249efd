import { ExpectedFailure } from '../expected-failure.ts'
import type { HeldUp } from './admin.ts'

/** What to do about a transaction that stays open. */
export const END_IT =
  'end the program that left it open, and Kafka ends the transaction after its transaction.timeout.ms; if it stays, ' +
  'kafka-transactions.sh describe-producers shows its producer, and abort ends it'

export const heldUpText = ({ partition, from, waiting }: HeldUp): string =>
  `partition ${partition} from offset ${from} on (${waiting} waiting)`

/** A topic that cannot be read to its end, because a program left a transaction open in it. */
export class OpenTransaction extends ExpectedFailure {
  readonly what: string
  readonly todo = `${END_IT}; then run the command again`

  constructor(topic: string, held: readonly HeldUp[]) {
    const where = held.map(heldUpText).join('; ')
    const what = `a program left a transaction open in ${topic}, ${where}, so payoutd cannot read the topic to its end and concludes nothing from it`
    super()
    this.what = what
    this.message = `${what}: ${this.todo}`
  }
}
