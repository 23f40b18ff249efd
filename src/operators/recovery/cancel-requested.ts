import { awaitsRefusal } from '../../domain/commands/refused.ts'
import type { Exchange } from '../../domain/evidence.ts'
import type { Scrubbed } from '../../domain/mask.ts'
import { stop } from '../../domain/payout/cancel.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { change } from '../../domain/payout/transition.ts'
import { type Ledger, storeDecisions } from '../../ledger/ledger.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { faultsOf, lockCancelRequested } from './sql/list.ts'

/**
 * Cancels or rejects the payouts for which that was due while the merchant was fenced, or leaves them to a person. Returns their
 * payoutIds.
 */
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
 * Decides about payouts whose commands break rules, once payoutd knows that the gateway has none of them: it rejects them, but
 * leaves one that was sent all the same to a person.
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
