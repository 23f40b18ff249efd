import type { Instant } from '../domain/instant.ts'
import { type Paise, paise, sum } from '../domain/money.ts'
import { estimatedFees } from '../domain/payout/fee.ts'
import type { State } from '../domain/payout/states.ts'
import type { NamedAccount } from '../gateway/dialect/account.ts'
import { type OpenPayouts, openPayouts, openPayoutsOfAll } from '../ledger/open-payouts.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { openByAccount } from './open-by-account.ts'
import { accountsKnown, type OpenAt } from './sql/accounts.ts'
import {
  inReview,
  type MerchantRow,
  merchantRows,
  type Pause,
  type Recovering,
  TOLD_AFTER,
} from './sql/merchants.ts'

export type Amounts = { count: number; amount: Paise }
/** What a merchant has under way. Ended payouts are not counted. */
export type MerchantTraffic = Record<
  Exclude<State, 'review' | 'paid' | 'failed' | 'rejected' | 'cancelled'>,
  Amounts
>

/** The rules of sending that the overview explains. */
export type PaceRules = {
  /** The part of the balance, in paise, that is still free to spend; below zero where more is kept than there is. */
  leftOf: (row: MerchantRow) => bigint
  /** So many good answers end the canary. */
  warm: number
}

/** `until` null: payoutd sends, and the gateway has accepted or refused none of the latest payouts. */
export type OpenCircuit = { until: Instant | null; reason: string | null }

/** The status of one merchant. A field is null if it does not apply. */
export type MerchantOverview = {
  merchantId: string
  /** Where dispatch sends its payouts. */
  account: NamedAccount | null
  /** Other accounts that may have its payouts or payins, and how many; `account` null: not kept. */
  openElsewhere: { accountId: string; account: NamedAccount | null; count: number }[]
  recovering: Recovering | null
  paused: Pause | null
  circuit: OpenCircuit | null
  canary: { good: number; of: number } | null
  /** Applies a second that the gateway seems to take, because it answered "later" to more; null: no limit was met. */
  learnedRate: number | null
  /** Null: payoutd never asked for it, or does not trust it any more. */
  balance: { available: Paise; ageMs: number } | null
  traffic: MerchantTraffic
  inReview: number
  /** How much is missing to send everything queued, with estimated fees; null: the balance is not known. */
  shortfall: Paise | null
}

/** Every merchant that ever sent, or was paused. */
export async function merchantOverviews(db: Database, rules: PaceRules): Promise<MerchantOverview[]> {
  const rows = await db.run(merchantRows, {})
  const open = await openPayoutsOfAll(db)
  const reviews = new Map((await db.run(inReview, {})).map(({ merchantId, count }) => [merchantId, count]))
  const known = Map.groupBy(await db.run(accountsKnown, {}), ({ merchantId }) => merchantId)
  const openAt = Map.groupBy(await openByAccount(db), ({ merchantId }) => merchantId)
  return rows.map((row) => ({
    ...overview(row, trafficOf(open.get(row.merchantId) ?? []), reviews.get(row.merchantId) ?? 0, rules),
    ...accountsOf(known.get(row.merchantId) ?? [], openAt.get(row.merchantId) ?? []),
  }))
}

function accountsOf(
  known: readonly (NamedAccount & { inForce: boolean })[],
  open: readonly OpenAt[],
): Pick<MerchantOverview, 'account' | 'openElsewhere'> {
  const named = (found: NamedAccount | undefined): NamedAccount | null => {
    if (!found) return null
    const { accountId, baseUrl, mchId, dialectName } = found
    return { accountId, baseUrl, mchId, dialectName }
  }
  const account = named(known.find(({ inForce }) => inForce))
  const openElsewhere = open.flatMap(({ accountId, count }) =>
    accountId === null || accountId === account?.accountId
      ? []
      : [{ accountId, account: named(known.findLast((each) => each.accountId === accountId)), count }],
  )
  return { account, openElsewhere }
}

/** What one merchant has under way now. */
export const merchantTraffic = async (db: Database, merchantId: string): Promise<MerchantTraffic> =>
  trafficOf(await openPayouts(db, merchantId))

function trafficOf(open: readonly OpenPayouts[]): MerchantTraffic {
  const of = (state: State): Amounts => {
    const those = open.filter((one) => one.state === state)
    return {
      count: those.reduce((all, { count }) => all + count, 0),
      amount: sum(those.map(({ amount }) => amount)),
    }
  }
  return {
    held: of('held'),
    queued: of('queued'),
    submitting: of('submitting'),
    unknown: of('unknown'),
    processing: of('processing'),
  }
}

function overview(
  row: MerchantRow,
  traffic: MerchantTraffic,
  inReview: number,
  { leftOf, warm }: PaceRules,
): Omit<MerchantOverview, 'account' | 'openElsewhere'> {
  const { merchantId, available, snapshotAt, warmUp, now } = row
  const { queued } = traffic
  const needed = queued.amount + estimatedFees(row, queued.amount, queued.count)
  const missing = needed - leftOf(row)
  return {
    merchantId,
    recovering: recoveryOf(row),
    paused: pauseOf(row),
    circuit: circuitOf(row),
    canary: warmUp < warm ? { good: warmUp, of: warm } : null,
    learnedRate: row.learnedRate,
    balance: available === null || snapshotAt === null ? null : { available, ageMs: now - snapshotAt },
    traffic,
    inReview,
    shortfall: available === null ? null : paise(missing > 0n ? missing : 0n),
  }
}

export const pauseOf = (row: MerchantRow): Pause | null =>
  row.pausedBy === null
    ? null
    : { pausedBy: row.pausedBy, pausedReason: row.pausedReason, pausedAt: row.pausedAt }

export const recoveryOf = (row: MerchantRow): Recovering | null =>
  row.recoveringSince === null
    ? null
    : {
        recoveringSince: row.recoveringSince,
        recoveringBy: row.recoveringBy,
        recoveringReason: row.recoveringReason,
      }

export const circuitOf = ({
  isCircuitOpen,
  circuitOpenUntil,
  circuitReason,
  circuitOpened,
  refusals,
  now,
}: MerchantRow): OpenCircuit | null => {
  if (!isCircuitOpen) return null
  const isWaiting = circuitOpenUntil !== null && now < circuitOpenUntil
  return {
    until: isWaiting ? circuitOpenUntil : null,
    reason: refusals >= TOLD_AFTER && circuitOpened === 0 ? `${refusals} × refused` : circuitReason,
  }
}
