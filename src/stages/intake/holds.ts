import { HOLD_REASONS, type HoldReason } from '../../domain/commands/holds.ts'
import { payPeriodAt } from '../../domain/commands/pay-period.ts'
import type { Instant } from '../../domain/instant.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { keyOf } from '../../ledger/ledger.ts'
import { mapKey } from '../../platform/map-key.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import type { NewPayout } from './new-payout.ts'
import {
  type BatchFile,
  claimFiles,
  type FileOwner,
  type Hold,
  hold,
  keepAndCompare,
  keepHolds,
  ownersOf,
  type Payment,
} from './sql/holds.ts'

/** Tells whose each file is. One that is nobody's becomes that of the batch it came under. */
export type OwnFiles = (tx: Transaction, files: readonly BatchFile[]) => Promise<readonly FileOwner[]>

export const ownFiles: OwnFiles = async (tx, files) => {
  await tx.run(claimFiles, { files })
  // A statement of its own, which sees what others committed while that waited.
  return tx.run(ownersOf, { files })
}

export type FileOwners = ReadonlyMap<bigint, FileOwner>

/**
 * Whose the files of these commands are. Those that the ledger has already count, too, and those of merchants who hold no
 * duplicates: their file is theirs, whatever became of its rows.
 */
export async function fileOwners(
  tx: Transaction,
  commands: readonly NewPayout[],
  own: OwnFiles,
): Promise<FileOwners> {
  const files = new Map<bigint, BatchFile>()
  for (const { payout, file, faults } of commands) {
    const { merchantId, batchId } = payout
    if (faults.length === 0 && batchId !== null && file !== null && !files.has(file))
      files.set(file, { file, merchantId, batchId })
  }
  if (files.size === 0) return new Map()
  return new Map((await own(tx, [...files.values()])).map((owner) => [owner.file, owner]))
}

/**
 * Holds those of the payouts just inserted that an operator should check: likely repeats of an earlier payment, and changed bank
 * details. Returns all of them, as they are now.
 */
export async function holdDoubtful(
  tx: Transaction,
  fresh: readonly NewPayout[],
  owners: FileOwners,
): Promise<readonly NewPayout[]> {
  const accepted = fresh.filter(mayBePaid)
  if (accepted.length === 0) return fresh
  const before = await tx.run(keepAndCompare, {
    payments: accepted.map((each) => paymentOf(each, tx.now)),
  })
  const known = Map.groupBy(before, keyOf)
  const together = [...duplicatesAmong(accepted), ...changedAmong(accepted)].filter(
    (hold) => !known.get(keyOf(hold))?.some(({ reason }) => reason === hold.reason),
  )
  const holds = Map.groupBy([...before, ...together, ...ofOthersFiles(accepted, owners)], keyOf)
  if (holds.size === 0) return fresh
  const doubtful = accepted.flatMap((each) => {
    const found = holds.get(keyOf(each.payout))
    return found ? [{ ...each, holds: found, payout: heldFor(each.payout, found) }] : []
  })
  await keep(tx, doubtful)
  const after = new Map(doubtful.map(({ payout }) => [keyOf(payout), payout]))
  return fresh.map((each) => ({ ...each, payout: after.get(keyOf(each.payout)) ?? each.payout }))
}

/** A ledger that was lost may have sent a payout that breaks a rule. */
const mayBePaid = ({ payout, faults }: NewPayout): boolean => faults.length === 0 || payout.state === 'held'

/** A payout that breaks a rule is kept, so that others are compared with it, but waits for no release. */
const isCompared = ({ faults, terms }: NewPayout): boolean => faults.length === 0 && terms.holdDuplicates

/**
 * The pay periods in which intake compares a payout: the one in which it may be sent, and an earlier one if its `notBefore` is
 * in that. None: its merchant does not want that.
 */
function periodsOf({ paysAt, command: { notBefore }, terms }: NewPayout) {
  if (!terms.holdDuplicates) return []
  const own = payPeriodAt(paysAt, terms.payPeriod)
  return notBefore !== null && notBefore < own.from ? [own, payPeriodAt(notBefore, terms.payPeriod)] : [own]
}

const lastPeriodFrom = ({ terms: { payPeriod } }: NewPayout, now: Instant): Instant =>
  payPeriodAt(payPeriodAt(now, payPeriod).from - 1, payPeriod).from

function paymentOf(each: NewPayout, now: Instant): Payment {
  const { payout, command } = each
  const [own, asked] = isCompared(each) ? periodsOf(each) : []
  return {
    ...each,
    merchantId: payout.merchantId,
    payoutId: payout.payoutId,
    batch: batchOf(each),
    amount: payout.amount,
    rowNumber: command.rowNumber,
    periodFrom: own?.from ?? null,
    periodTo: own?.to ?? null,
    askedFrom: asked?.from ?? null,
    askedTo: asked?.to ?? null,
    askedAt: asked ? command.notBefore : null,
    lastFrom: isCompared(each) ? lastPeriodFrom(each, now) : null,
    changesWanted: areChangesWanted(each),
  }
}

/** Finds duplicates among payouts of one transaction, which do not find each other in the database. */
function duplicatesAmong(accepted: readonly NewPayout[]): Hold[] {
  const earlier = new Map<string, NewPayout[]>()
  const rows = new Map<string, NewPayout>()
  return accepted.flatMap((each): Hold[] => {
    const { merchantId, amount } = each.payout
    const same = mapKey(merchantId, each.payeeHash.toString('base64'), amount)
    const others = earlier.get(same) ?? []
    const row = rowOf(each)
    const first = others.find((other) => isAgain(other, each)) ?? (row && rows.get(mapKey(same, row)))
    // One of each batch, period and file is enough for all others to find.
    if (!others.some((other) => isAlike(other, each))) earlier.set(same, [...others, each])
    if (row && !rows.has(mapKey(same, row))) rows.set(mapKey(same, row), each)
    return first && isCompared(each) ? [holdBeside(first, each, 'duplicate')] : []
  })
}

/** Finds changed bank details among payouts of one transaction. */
function changedAmong(accepted: readonly NewPayout[]): Hold[] {
  const earlier = new Map<string, NewPayout[]>()
  return accepted.flatMap((each): Hold[] => {
    if (each.beneficiaryIdHash === null) return []
    const id = mapKey(each.payout.merchantId, each.beneficiaryIdHash.toString('base64'))
    const others = earlier.get(id) ?? []
    const first = areChangesWanted(each) && others.find((other) => isChangedElsewhere(other, each))
    others.push(each)
    earlier.set(id, others)
    return first ? [holdBeside(first, each, 'beneficiary-changed')] : []
  })
}

const areChangesWanted = ({ faults, terms }: NewPayout): boolean =>
  faults.length === 0 && terms.holdChangedBeneficiaries

/** `payout` came in the transaction of an earlier one, for which it is held. */
const holdBeside = (earlier: NewPayout, { payout }: NewPayout, reason: HoldReason): Hold => ({
  ...{ merchantId: payout.merchantId, payoutId: payout.payoutId, reason },
  ...{ earlierPayoutId: earlier.payout.payoutId, earlierBatchId: earlier.payout.batchId },
  ...{ earlierMerchantId: null, since: earlier.paysAt },
})

const isChangedElsewhere = (one: NewPayout, other: NewPayout): boolean =>
  !one.beneficiaryHash.equals(other.beneficiaryHash) &&
  (batchOf(one) !== batchOf(other) || one.file !== other.file)

/** The row of a file; null: the payout came in no file. */
const rowOf = ({ file, command: { rowNumber }, ...each }: NewPayout): string | null =>
  file === null || rowNumber === null ? null : mapKey(batchOf(each), file, rowNumber)

/** Whether one of two equal payments puts the other in doubt, whatever their rows. */
const isAgain = (one: NewPayout, other: NewPayout): boolean =>
  batchOf(one) === batchOf(other) ? one.file !== other.file : isOfSamePeriod(one, other)

/** Whether every payout that finds `each` also finds `other`. */
const isAlike = (other: NewPayout, each: NewPayout): boolean =>
  batchOf(other) === batchOf(each) &&
  other.file === each.file &&
  periodsOf(each).every(({ from }) => periodsOf(other).some((period) => period.from === from))

const isOfSamePeriod = (one: NewPayout, other: NewPayout): boolean =>
  periodsOf(one).some(({ from }) => periodsOf(other).some((period) => period.from === from))

/** A payout without a batch is a batch of its own, which no batchId can be. */
const batchOf = ({ payout }: Pick<NewPayout, 'payout'>): string => payout.batchId ?? `:${payout.payoutId}`

/** Finds payouts whose file came under another batch first. */
const ofOthersFiles = (accepted: readonly NewPayout[], owners: FileOwners): Hold[] =>
  accepted.flatMap((each): Hold[] => {
    const { merchantId, payoutId, batchId } = each.payout
    const owner = each.file === null ? undefined : owners.get(each.file)
    if (!owner || batchId === null || !isCompared(each)) return []
    const isOther = owner.merchantId !== merchantId
    if (!isOther && owner.batchId === batchId) return []
    return [
      {
        ...{ merchantId, payoutId, reason: 'duplicate-file', earlierPayoutId: null },
        ...{ earlierBatchId: owner.batchId, earlierMerchantId: isOther ? owner.merchantId : null },
        since: owner.since,
      },
    ]
  })

type HeldPayout = Payout & { reason: HoldReason }

function heldFor(payout: Payout, holds: readonly Hold[]): HeldPayout {
  const reasons = holds.map(({ reason }) => reason)
  const reason = HOLD_REASONS.find((each) => reasons.includes(each)) as HoldReason
  return { ...payout, state: 'held', reason, ready: false, dueAt: payout.deadline }
}

async function keep(
  tx: Transaction,
  doubtful: readonly { payout: HeldPayout; paysAt: Instant; holds: readonly Hold[] }[],
): Promise<void> {
  await tx.run(hold, { held: doubtful.map(({ payout }) => payout) })
  const holds = doubtful.flatMap(({ holds, paysAt }) => holds.map((each) => ({ ...each, paysAt })))
  await tx.run(keepHolds, { holds })
}
