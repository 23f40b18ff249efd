import type { Fault } from '../../domain/fault.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { faultsOf } from './sql/list.ts'

/** Why a payout was rejected, from the last reading of its command; none for other payouts. */
export async function faultsOfRejected(
  tx: Transaction,
  { merchantId, payoutId, state }: Payout,
): Promise<Fault[]> {
  if (state !== 'rejected') return []
  const [refused] = await tx.run(faultsOf, { merchantId, payoutIds: [payoutId] })
  return refused?.faults ?? []
}
