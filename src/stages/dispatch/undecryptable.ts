import type { PayoutKey } from '../../domain/identifiers.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { become, change } from '../../domain/payout/transition.ts'
import { type Ledger, storeDecisions } from '../../ledger/ledger.ts'
import type { Logger } from '../../platform/log.ts'
import { Batchers } from '../../platform/postgres/batchers.ts'
import { atMost, blame, signing } from '../../platform/postgres/postgres.ts'
import { lockAwaitingKey, payoutsAwaitingKey } from './sql/undecryptable.ts'

/** Puts a payout aside, unsent, so that others go on. */
export function hold(payout: Payout, keyId: number): Decision {
  const held = become(payout, 'held', { reason: 'details-sealed', dueAt: payout.deadline })
  const note = `the bank details were encrypted with key ${keyId}, and no key of this process decrypts them`
  return change(payout, held, 'VALIDATION', { note })
}

const BATCH = 500
/** How many merchants' payouts are queued again at the same time: each merchant uses a connection. */
const MOST_AT_ONCE = 2

/** The wait before another try after the database failed. */
const AGAIN_MS = 60_000

const FIRST: PayoutKey = { merchantId: '', payoutId: '' }

/** `error`: why the merchant's payouts are not queued again. `mayPass`: the database failed, but does not refuse them. */
type NotReleased = { merchantId: string; error: unknown; mayPass: boolean }

/**
 * Queues payouts that were put aside again, after a process has started with keys that others may have lacked. It tries each
 * payout once, so it ends even while another process puts some aside again. Each transaction is of one merchant, and leaves out
 * what the database refuses, which is logged.
 */
export class KeyTrial {
  readonly #ledger: Ledger
  readonly #log: Logger
  #after: PayoutKey | null = FIRST
  #released = 0
  #isLeft = false

  constructor(ledger: Ledger, log: Logger) {
    this.#ledger = ledger
    this.#log = log
  }

  /**
   * Tries some of them, and calls `sign`, a sign of life, for each merchant. Returns how many ms to wait before the next turn;
   * null: nothing is left to try.
   */
  async turn(sign: () => void): Promise<number | null> {
    if (this.#after === null) return null
    const { released, failures, next } = await releaseSome(
      { ...this.#ledger, db: signing(sign, this.#ledger.db) },
      this.#after,
    )
    for (const { merchantId, error, mayPass } of failures) {
      const line = { err: error, merchantId, triedAgain: mayPass }
      this.#log.error(line, 'could not queue the payouts that waited for a key again')
      this.#isLeft ||= mayPass
    }
    this.#released += released
    this.#after = next
    if (next !== null) return 0
    if (this.#released > 0) {
      this.#log.info({ payouts: this.#released }, 'queued payouts again that waited for a key')
    }
    if (!this.#isLeft) return null
    this.#isLeft = false
    this.#released = 0
    this.#after = FIRST
    return AGAIN_MS
  }
}

/** Releases payouts after `after`. `failures`: the first of each merchant. `next`: where to go on; null: there are no more. */
async function releaseSome(
  ledger: Ledger,
  after: PayoutKey,
): Promise<{ released: number; failures: NotReleased[]; next: PayoutKey | null }> {
  const { merchantId, payoutId } = after
  const page = await ledger.db.run(payoutsAwaitingKey, { merchantId, payoutId, limit: BATCH })
  const db = atMost(MOST_AT_ONCE, ledger.db)
  const batches = new Batchers<PayoutKey, boolean>(
    { size: BATCH, waitMs: 0, lanes: 1, bare: (key) => key },
    (keys) => releaseThese(keys, { ...ledger, db }),
  )
  const failures = new Map<string, NotReleased>()
  const released = await Promise.all(
    page.map((key) =>
      batches.add(key.merchantId, key).catch((error: unknown) => {
        const { merchantId } = key
        if (!failures.has(merchantId))
          failures.set(merchantId, { merchantId, error, mayPass: blame(error) === 'database' })
        return false
      }),
    ),
  )
  return {
    released: released.filter((is) => is).length,
    failures: [...failures.values()],
    next: page.length < BATCH ? null : (page.at(-1) ?? null),
  }
}

/** Releases payouts of one merchant. Resolves, for each, to whether it still waited for a key. */
function releaseThese(keys: readonly PayoutKey[], ledger: Ledger): Promise<boolean[]> {
  const [{ merchantId }] = keys as [PayoutKey]
  const payoutIds = keys.map(({ payoutId }) => payoutId)
  return ledger.db.transaction('release held', async (tx) => {
    const held = await tx.run(lockAwaitingKey, { merchantId, payoutIds })
    await storeDecisions(tx, ledger, held.map(release))
    const released = new Set(held.map(({ payoutId }) => payoutId))
    return payoutIds.map((payoutId) => released.has(payoutId))
  })
}

function release(payout: Payout): Decision {
  const queued = become(payout, 'queued', { ready: true, dueAt: payout.deadline })
  return change(payout, queued, 'COMMAND', { note: 'payoutd started again and tries its keys' })
}
