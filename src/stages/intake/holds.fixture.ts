import type { TestContext } from 'node:test'
import { accepted, payoutsOf, testLedger } from '../../../test/ledger.ts'
import type { PayoutCommand } from '../../domain/commands/command.ts'
import type { HoldReason } from '../../domain/commands/holds.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import type { State } from '../../domain/payout/states.ts'
import { become } from '../../domain/payout/transition.ts'
import { lockPayouts, storeDecisions } from '../../ledger/ledger.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import type { MerchantTerms } from './parse-command.ts'

type Held = {
  payoutId: string
  reason: HoldReason
  earlierPayoutId: string | null
  earlierBatchId: string | null
  earlierMerchantId: string | null
  since: number
}
const holds = sql<object, Held>`
  select payout_id, reason, earlier_payout_id, earlier_batch_id, earlier_merchant_id, since from holds order by payout_id, reason`
const attempted = sql<{ payoutId: string; attempt: number }>`
  insert into attempts (merchant_id, payout_id, attempt, order_no, owner, lease_until)
  values ('acme', ${'payoutId'}, ${'attempt'}, '', 'me', now())`

const HOLDING: Partial<MerchantTerms> = { holdDuplicates: true, holdChangedBeneficiaries: true }

/** A ledger whose merchant wants every kind of hold, unless `terms` say otherwise. */
export async function holding(t: TestContext, terms: Partial<MerchantTerms> = {}) {
  const { ledger, config, codec } = await testLedger(t)
  return {
    ledger,
    config,
    codec,
    take: (...commands: PayoutCommand[]) => accepted(ledger, config, commands, { ...HOLDING, ...terms }),
    reasons: async () =>
      Object.fromEntries(
        (await payoutsOf(ledger)).map(({ payoutId, state, reason }) => [payoutId, reason ?? state]),
      ),
    holds: () => ledger.db.run(holds, {}),
    /** Moves a payout by hand, as evidence would. */
    move: (payoutId: string, ...states: State[]) =>
      decided(payoutId, ...states.map((state) => (payout: Payout) => moved(payout, state))),
    decided,
  }

  async function decided(payoutId: string, ...decisions: ((payout: Payout, now: number) => Decision)[]) {
    for (const decide of decisions) {
      await ledger.db.transaction('test', async (tx) => {
        const [payout] = await lockPayouts(tx, [{ merchantId: 'acme', payoutId }])
        const decision = decide(payout as Payout, tx.now)
        await storeDecisions(tx, ledger, [decision])
        if ('change' in decision && decision.change.after.state === 'submitting')
          await tx.run(attempted, { payoutId, attempt: decision.change.after.attempt })
      })
    }
  }
}

const moved = (before: Payout, state: State): Decision => {
  const attempt = state === 'submitting' ? before.attempt + 1 : before.attempt
  return { change: { before, after: become(before, state, { attempt }), source: 'OPERATOR', exchange: null } }
}
