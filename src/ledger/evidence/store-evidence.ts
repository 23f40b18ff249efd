import { NEVER_SENT } from '../../domain/payout/ledger-lacks-attempt.ts'
import type { Anomaly, Decision } from '../../domain/payout/payout.ts'
import { isEnd } from '../../domain/payout/states.ts'
import type { Logger } from '../../platform/log.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import type { CommitName } from '../../platform/running/crash-points.ts'
import { pause } from '../../platform/running/lifecycle.ts'
import { fencedMerchants, type Ledger, storeDecisions } from '../ledger.ts'
import { askAnew, isToAskAnew, lockIfFree, noteLoss, raiseFence } from '../sql/fence.ts'
import { BY_PAYOUTD, FENCED, fenceForLosses } from './proven-losses.ts'

/** `queryPolicies`: of the merchants in the settings. */
type EvidenceDeps = { ledger: Ledger; log: Logger; queryPolicies: ReadonlyMap<string, unknown> }

const setBack = (detail: string): string => `the ledger was set back: ${detail}`

/** By merchant: what shows that the ledger has lost something, and the payouts concerned. */
type Losses = ReadonlyMap<string, Loss>
type Loss = { reason: string; payoutIds: (string | null)[] }

/** Decides about locked payouts, given which merchants are fenced. */
type Decide = (fenced: ReadonlySet<string>) => Decision[]
type Besides = {
  /** Whether the gateway, when payoutd asked, had the order that this decision is about. */
  isFound?: (index: number) => boolean
  /** Stores what follows from the decisions. */
  alsoStore?: (tx: Transaction, decisions: readonly Decision[]) => Promise<void>
}

/**
 * Stores the decisions about evidence in one transaction, in which `load` locks payouts. If they show that the ledger has lost
 * a send, fences the merchant in the same transaction and calls `decide` again: payoutd sends nothing more of that merchant
 * until `payoutd recover` has asked the gateway about everything open. If the gateway reports an order that it reported as
 * absent to a recovery, that recovery asks about everything again. If they prove that the ledger was set back, no merchant sends
 * anything from then on, and each is fenced.
 */
export async function storeEvidence(
  { ledger, log, queryPolicies }: EvidenceDeps,
  name: CommitName,
  load: (tx: Transaction) => Promise<Decide>,
  { isFound, alsoStore }: Besides = {},
): Promise<Decision[]> {
  const { losses, proof, decisions } = await ledger.db.transaction(name, async (tx) => {
    const decide = await load(tx)
    const fenced = await fencedMerchants(tx)
    const first = decide(fenced)
    const losses = lossesIn(first)
    for (const [merchantId, loss] of losses) await fence(tx, merchantId, loss)
    for (const [merchantId, payoutIds] of aliveIn(first, isFound)) {
      if (!fenced.has(merchantId)) continue
      const [isDue] = await tx.run(isToAskAnew, { merchantId, payoutIds })
      if (!isDue) continue
      await lockBehindPayouts(tx, merchantId)
      await tx.run(askAnew, { merchantId, payoutIds })
    }
    const decisions = losses.size > 0 ? decide(await fencedMerchants(tx)) : first
    await storeDecisions(tx, ledger, decisions)
    await alsoStore?.(tx, decisions)
    const proof = decisions.flatMap((each) => ('anomaly' in each ? [each.anomaly] : [])).find(provesLoss)
    if (proof)
      await tx.run(noteLoss, { reason: `${setBack(proof.detail)} (a payout of ${proof.merchantId})` })
    return { losses, proof, decisions }
  })
  for (const [merchantId, { reason }] of losses) log.error({ merchantId, reason }, FENCED)
  if (proof) {
    await fenceForLosses({ ledger, log, merchantIds: [...queryPolicies.keys()] }).catch((err: unknown) =>
      log.error({ err }, 'payoutd could not fence every merchant: until it can, none sends anything'),
    )
  }
  return decisions
}

/**
 * Whether no stranger can make this up: an answer to an apply of this process, or to a query about a payout that was in the
 * ledger. Anybody who may use a gateway account can make what the other evidence of a loss is about.
 */
const provesLoss = ({ kind, source, payoutId }: Anomaly): boolean =>
  kind === NEVER_SENT && (source === 'APPLY' || (source === 'QUERY' && payoutId === null))

async function fence(tx: Transaction, merchantId: string, { reason, payoutIds }: Loss): Promise<void> {
  await lockBehindPayouts(tx, merchantId)
  await tx.run(raiseFence, { merchantId, by: BY_PAYOUTD, reason, feeEstimate: 0n })
  await tx.run(askAnew, { merchantId, payoutIds })
}

/** Longer than payoutd itself waits for a lock, and shorter than a transaction may last. */
const LOOK_FOR_MS = 4_000
const LOOK_EVERY_MS = 5

/**
 * All other code locks merchants before payouts, so Postgres could abort a transaction that waits here, to end a deadlock: the
 * payout would be free, and sent, before the fence is up. Polling holds no place in the deadlock: Postgres aborts the other one.
 */
async function lockBehindPayouts(tx: Transaction, merchantId: string): Promise<void> {
  for (let left = LOOK_FOR_MS / LOOK_EVERY_MS; left > 0; left--) {
    const [merchant] = await tx.run(lockIfFree, { merchantId })
    if (merchant?.isFree !== false) return
    await pause(LOOK_EVERY_MS)
  }
}

/** By merchant, the open payouts that show a sign of life: the gateway may just have reported them absent to a recovery. */
function aliveIn(
  decisions: readonly Decision[],
  isFound: Besides['isFound'] = () => false,
): [string, string[]][] {
  const alive = decisions.flatMap((decision, i) => {
    if (!('change' in decision) || isEnd(decision.change.before.state)) return []
    const { before, after } = decision.change
    const isAlive = after.state === 'processing' || after.state === 'paid'
    return isFound(i) || (isAlive && after.state !== before.state) ? [after] : []
  })
  const byMerchant = Map.groupBy(alive, ({ merchantId }) => merchantId)
  return [...byMerchant]
    .map(([merchantId, payouts]): [string, string[]] => [merchantId, payouts.map(({ payoutId }) => payoutId)])
    .sort(byId)
}

const byId = ([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number =>
  one < other ? -1 : 1

/** In the order in which merchants are locked. */
function lossesIn(decisions: readonly Decision[]): Losses {
  const losses = new Map<string, Loss>()
  for (const decision of decisions) {
    if (!('anomaly' in decision) || decision.anomaly.kind !== NEVER_SENT) continue
    const { merchantId, payoutId, detail } = decision.anomaly
    const known = losses.get(merchantId)
    if (known) known.payoutIds.push(payoutId)
    else losses.set(merchantId, { reason: setBack(detail), payoutIds: [payoutId] })
  }
  return new Map([...losses].sort(byId))
}
