import type { Logger } from '../../platform/log.ts'
import type { Clock } from '../../platform/running/clock.ts'
import type { Claim } from './claim.ts'
import type { Aside } from './claim-candidates.ts'

const SHORT_TOLD_EVERY_MS = 60_000

const OTHERS = {
  'other-settings':
    'somebody put other gateway settings into force, so this process sends nothing more for the merchant: restart it with them',
  'other-version':
    'a newer payoutd has changed the tables, so this process sends nothing more: it might pay twice or pay what was cancelled. ' +
    'Stop it, and start the newer version',
}

/** Logs what people should know of claims: nothing again and again that every claim finds. */
export class ClaimNews {
  readonly #clock: Clock
  readonly #log: Logger
  /** By merchant: until when it is known that the balance is short. */
  readonly #toldShort = new Map<string, number>()
  readonly #outdated = new Set<string>()

  constructor({ clock, log }: { clock: Clock; log: Logger }) {
    this.#clock = clock
    this.#log = log
  }

  /** The merchants for which this process sends nothing, because it has other settings than those in force, or an older version. */
  get outdated(): ReadonlySet<string> {
    return this.#outdated
  }

  tell(merchantId: string, { aside, gate, shortOf }: Claim): void {
    if (shortOf) this.#tellShort(merchantId, shortOf.payoutId)
    if (gate.closed === 'other-settings' || gate.closed === 'other-version')
      this.#tellOther(merchantId, gate.closed)
    // These are found before the settings are compared.
    else if (gate.closed !== 'locked' && gate.closed !== 'set-back') this.#outdated.delete(merchantId)
    for (const each of aside) this.#tellAside(each)
  }

  /** Nothing changes until this process is started again. */
  #tellOther(merchantId: string, what: keyof typeof OTHERS): void {
    if (this.#outdated.has(merchantId)) return
    this.#outdated.add(merchantId)
    this.#log.warn({ merchantId }, OTHERS[what])
  }

  #tellShort(merchantId: string, payoutId: string): void {
    const now = this.#clock.monotonic()
    if (now < (this.#toldShort.get(merchantId) ?? 0)) return
    this.#toldShort.set(merchantId, now + SHORT_TOLD_EVERY_MS)
    this.#log.warn({ merchantId, payoutId }, 'the balance does not cover the next payout: it waits')
  }

  #tellAside({ payout: { merchantId, payoutId }, ...aside }: Aside): void {
    const log = this.#log
    switch (aside.why) {
      case 'details-sealed':
        log.error(
          { merchantId, payoutId, keyId: aside.keyId },
          'cannot decrypt the bank details, so the payout is held, unsent: add the key that encrypted them to ENCRYPTION_KEYS, ' +
            'and restart payoutd',
        )
        break
      case 'tampered':
        log.error(
          { merchantId, payoutId },
          'amount, bank details or order number changed after payoutd accepted them, so the payout is in review, unsent: find out ' +
            'who changed the database, and pay it under a new payoutId',
        )
        break
      case 'account-changed':
        log.warn(
          { merchantId, payoutId },
          'a former gateway account may still have an attempt, so the payout is in review: see payoutd payout show',
        )
        break
      case 'no-promise':
        log.warn(
          { merchantId, payoutId, why: aside.note },
          'the payout was to be sent again, but the settings no longer have the promise of the gateway that made this safe, so it is in review: see payoutd payout show',
        )
    }
  }
}
