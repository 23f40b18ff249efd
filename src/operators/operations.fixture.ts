import { paise } from '../domain/money.ts'
import type { Decision, Payout } from '../domain/payout/payout.ts'
import { become } from '../domain/payout/transition.ts'
import { type Ledger, lockPayouts, storeDecisions } from '../ledger/ledger.ts'

/** Stores what `decide` decides about a payout of `acme`, as a stage would. */
export async function decided(
  ledger: Ledger,
  payoutId: string,
  decide: (payout: Payout, now: number) => Decision,
): Promise<void> {
  await ledger.db.transaction('test', async (tx) => {
    const [payout] = await lockPayouts(tx, [{ merchantId: 'acme', payoutId }])
    if (!payout) throw new Error(`there is no payout ${payoutId}`)
    await storeDecisions(tx, ledger, [decide(payout, tx.now)])
  })
}

/** Sent, so that the gateway may have it. */
export const submit = (payout: Payout, now: number): Decision => ({
  change: {
    before: payout,
    after: become(payout, 'submitting', { attempt: payout.attempt + 1, dueAt: now + 15_000 }),
    source: 'COMMAND',
    exchange: null,
  },
})

/** Accepted by the gateway under `AP-` and its payoutId. */
export const accept = (payout: Payout, now: number): Decision => ({
  change: {
    before: payout,
    after: become(payout, 'processing', {
      agentpayOrderId: `AP-${payout.payoutId}`,
      fee: paise(500n),
      dueAt: now + 3_000,
    }),
    source: 'APPLY',
    exchange: {
      request: { accountNo: '••••6789' },
      response: { retCode: 'SUCCESS' },
      httpStatus: 200,
      tookMs: 7,
    },
  },
})
