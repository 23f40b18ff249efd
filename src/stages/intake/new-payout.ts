import type { KeyObject } from 'node:crypto'
import { FAULTS } from '../../domain/commands/refused.ts'
import { isIdentifier } from '../../domain/commands/validate.ts'
import {
  beneficiaryHash,
  beneficiaryIdHash,
  contentHash,
  fileMark,
  fingerprint,
  orderNumber,
  payeeHash,
} from '../../domain/identifiers.ts'
import type { Instant } from '../../domain/instant.ts'
import { scrub } from '../../domain/mask.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { sealDetails } from '../../ledger/encrypted-details.ts'
import { json } from '../../messages/json.ts'
import type { SealingKeys } from '../../platform/seal.ts'
import { cutText } from '../../text/text.ts'
import type { PayoutRequest } from './parse-command.ts'

export type IntakeKeys = { sealing: SealingKeys; fingerprint: KeyObject }

/** A requested payout, with the data to store beside it and the hashes to compare it by. */
export type NewPayout = PayoutRequest & {
  payout: Payout
  /** The time from which it may be sent. */
  paysAt: Instant
  /** See payout_commands.file; null: the payout came in no file. */
  file: bigint | null
  fingerprint: Buffer
  content: Buffer
  payeeHash: Buffer
  beneficiaryHash: Buffer
  beneficiaryIdHash: Buffer | null
  sealed: Buffer
}

/** The payout that a command begins as, if its merchant is not fenced. */
export function newPayout(request: PayoutRequest, keys: IntakeKeys, now: Instant): NewPayout {
  const { command, terms, faults } = request
  const { merchantId, payoutId, batchId, amount, currency, notBefore } = command
  const refused = faults.length > 0
  const paysAt = refused ? now : Math.max(notBefore ?? now, now)
  const deadline = (refused ? null : command.deadline) ?? paysAt + terms.deadlineMs
  const begin = refused
    ? ({ state: 'rejected', reason: FAULTS, ready: false, dueAt: null } as const)
    : paysAt > now
      ? ({ state: 'held', reason: 'schedule', ready: false, dueAt: Math.min(paysAt, deadline) } as const)
      : ({ state: 'queued', reason: null, ready: true, dueAt: deadline } as const)
  const payout: Payout = {
    ...begin,
    merchantId,
    payoutId,
    // A refused command may hold anything, so its fields are cut to fit the columns.
    batchId: batchId !== null && isIdentifier(batchId) ? batchId : null,
    orderNo: orderNumber(merchantId, payoutId, 1),
    amount,
    currency: cutText(scrub(currency), 8),
    version: 1,
    attempt: 0,
    accountId: null,
    doubted: false,
    absenceConfirmed: false,
    unpaidCodes: null,
    turnedAway: false,
    orderShown: false,
    orderBesides: false,
    refusal: null,
    unreported: false,
    saidOtherwise: null,
    cancelRequest: null,
    agentpayOrderId: null,
    fee: null,
    utr: null,
    deadline,
    unknownSince: null,
    queries: 0,
    notFoundCount: 0,
    askedAt: null,
    lastChangeAt: now,
  }
  return {
    ...request,
    payout,
    paysAt,
    file: fileMark(command),
    fingerprint: fingerprint(command, keys.fingerprint),
    content: contentHash(command, { refused }, keys.fingerprint),
    payeeHash: payeeHash(command, keys.fingerprint),
    beneficiaryHash: beneficiaryHash(command, keys.fingerprint),
    beneficiaryIdHash: beneficiaryIdHash(command, keys.fingerprint),
    // Sealed here, not while storing: others wait during a merchant's turn.
    sealed: sealDetails(command, keys.sealing),
  }
}

export const payoutRow = ({ payout, command, faults }: NewPayout) => ({
  ...payout,
  priority: faults.length > 0 ? 0 : command.priority,
})

/** Faults are masked already; everything else that identifies the beneficiary is sealed. */
export const commandRow = ({ payout, command, faults, ...stored }: NewPayout) => ({
  ...stored,
  ...{ merchantId: payout.merchantId, payoutId: payout.payoutId, batchId: payout.batchId },
  rowNumber: command.rowNumber,
  faults: faults.length > 0 ? json(faults) : null,
  notBefore: faults.length > 0 ? null : command.notBefore,
})
