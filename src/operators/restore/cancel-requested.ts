import { awaitsRefusal } from '../../domain/commands/refused.ts'
import type { Exchange } from '../../domain/evidence.ts'
import type { Scrubbed } from '../../domain/mask.ts'
import { stop } from '../../domain/payout/cancel.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { change } from '../../domain/payout/transition.ts'
import { type Ledger, storeDecisions } from '../../ledger/ledger.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { faultsOf, lockCancelRequested } from './sql/list.ts'

/** Cancels or refuses what was to be while the merchant was fenced, or leaves it to a person. Returns the payoutIds. */
export async function cancelRequested(
  tx: Transaction,
  merchantId: string,
  who: Scrubbed,
  ledger: Ledger,
): Promise<string[]> {
  const asked = await tx.run(lockCancelRequested, { merchantId })
  const [refused, cancelled] = [asked.filter(awaitsRefusal), asked.filter((each) => !awaitsRefusal(each))]
  const stopped = cancelled.map((payout) =>
    change(payout, stop(payout), 'OPERATOR', { note: `${payout.cancelRequest} (once recovered; ${who})` }),
  )
  const note = `held while its merchant was fenced (recovered by ${who})`
  await storeDecisions(tx, ledger, [...stopped, ...(await refusals(tx, refused, { note }))])
  return asked.map(({ payoutId }) => payoutId)
}

/**
 * What becomes of payouts whose commands break rules, once it is known that the gateway has none of them: they are rejected,
 * and one that was sent once all the same is a person's to decide about.
 */
export async function refusals(
  tx: Transaction,
  payouts: readonly Payout[],
  exchange: Exchange,
): Promise<Decision[]> {
  const [first] = payouts
  if (!first) return []
  const payoutIds = payouts.map(({ payoutId }) => payoutId)
  const faults = await tx.run(faultsOf, { merchantId: first.merchantId, payoutIds })
  const byId = new Map(faults.map((each) => [each.payoutId, each.faults]))
  return payouts.map((before) => {
    const after = stop(before)
    return {
      change: { before, after, source: 'VALIDATION', faults: byId.get(before.payoutId) ?? [], exchange },
    }
  })
}
