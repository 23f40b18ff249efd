import type { PayoutKey } from '../../domain/identifiers.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { become, change } from '../../domain/payout/transition.ts'
import { detailsContext } from '../../ledger/encryption-contexts.ts'
import { type Ledger, storeDecisions } from '../../ledger/ledger.ts'
import type { Logger } from '../../platform/log.ts'
import { Batchers } from '../../platform/postgres/batchers.ts'
import { atMost, signing } from '../../platform/postgres/postgres.ts'
import { opens, type SealingKeys } from '../../platform/seal.ts'
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

const EVERY_MS = 60_000

const FIRST: PayoutKey = { merchantId: '', payoutId: '' }

type NotReleased = { merchantId: string; error: unknown }

/**
 * Queues payouts again that other processes put aside, which lacked the key: again and again, because while one process after the
 * other is started with a new key, the last ones without it still put payouts aside. Each transaction is of one merchant, and
 * leaves out what the database refuses, which is logged.
 */
export class KeyTrial {
  readonly #ledger: Ledger
  readonly #sealing: SealingKeys
  readonly #log: Logger
  #after = FIRST
  #released = 0

  constructor(ledger: Ledger, sealing: SealingKeys, log: Logger) {
    this.#ledger = ledger
    this.#sealing = sealing
    this.#log = log
  }

  /** Tries some of them, and calls `sign`, a sign of life, for each merchant. Returns how many ms to wait before the next turn. */
  async turn(sign: () => void): Promise<number> {
    const { released, failures, next } = await releaseSome(
      { ...this.#ledger, db: signing(sign, this.#ledger.db) },
      this.#after,
      this.#sealing,
    )
    for (const { merchantId, error } of failures)
      this.#log.error({ err: error, merchantId }, 'could not queue the payouts that waited for a key again')
    this.#released += released
    this.#after = next ?? FIRST
    if (next !== null) return 0
    if (this.#released > 0)
      this.#log.info({ payouts: this.#released }, 'queued payouts again that waited for a key')
    this.#released = 0
    return EVERY_MS
  }
}

/** Releases payouts after `after` of which this process has the key. `failures`: the first of each merchant. `next`: where to go on; null: there are no more. */
async function releaseSome(
  ledger: Ledger,
  after: PayoutKey,
  sealing: SealingKeys,
): Promise<{ released: number; failures: NotReleased[]; next: PayoutKey | null }> {
  const { merchantId, payoutId } = after
  const page = await ledger.db.run(payoutsAwaitingKey, { merchantId, payoutId, limit: BATCH })
  const db = atMost(MOST_AT_ONCE, ledger.db)
  const batches = new Batchers<PayoutKey, boolean>({ size: BATCH, waitMs: 0, bare: (key) => key }, (keys) =>
    releaseThese(keys, { ...ledger, db }),
  )
  const failures = new Map<string, NotReleased>()
  const released = await Promise.all(
    page
      .filter(({ sealed, ...key }) => sealed !== null && opens(sealed, detailsContext(key), sealing))
      .map(({ merchantId, payoutId }) => ({ merchantId, payoutId }))
      .map((key) =>
        batches.add(key.merchantId, key).catch((error: unknown) => {
          const { merchantId } = key
          if (!failures.has(merchantId)) failures.set(merchantId, { merchantId, error })
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
  return change(payout, queued, 'COMMAND', {
    note: 'this process has the key that encrypted the bank details',
  })
}
