import type { AmountLimits, PayoutCommand } from '../payout/command.ts'
import type { Fault } from '../payout/fault.ts'
import { MOST } from '../payout/limits.ts'
import { type Scrubbed, words } from '../payout/mask.ts'
import { type Paise, paise } from '../payout/money.ts'
import type { PayPeriod } from '../payout/pay-period.ts'
import { isIdentifier, isOfThisCentury, validate } from '../payout/validate.ts'
import type { Decoded } from '../platform/kafka/codec.ts'
import { cutText } from '../platform/text.ts'

/** What a merchant's settings say about its commands. */
export type MerchantTerms = {
  limits: AmountLimits
  deadlineMs: number
  payPeriod: PayPeriod
  holdDuplicates: boolean
  holdChangedBeneficiaries: boolean
}
export type Terms = ReadonlyMap<string, MerchantTerms>

export type BatchDeclaration = {
  merchantId: string
  batchId: string
  rows: number
  amount: Paise
  refused: number
  fileHash: string
  declaredAt: number
}

/** One record of `payout.commands`, understood. */
export type Understood =
  | { kind: 'payout'; command: PayoutCommand; terms: MerchantTerms; faults: Fault[] }
  | { kind: 'cancel'; merchantId: string; payoutId: string; why: Scrubbed }
  | { kind: 'batch'; declaration: BatchDeclaration }
  | { kind: 'dead'; reason: string }

/** The records of `schemas/`, as the codec gives them: long as bigint, timestamps in milliseconds. */
type PayoutRequested = Omit<PayoutCommand, 'amount'> & { amount: bigint }
type PayoutCancelRequested = { merchantId: string; payoutId: string; reason: string; requestedBy: string }
type PayoutBatchDeclared = Omit<BatchDeclaration, 'amount'> & { amount: bigint }

/**
 * What a decoded record asks for. Only what cannot even be answered is dead: bytes nobody can decode, a
 * merchant that is not ours, an id that cannot be a key. Every other fault is a rejection with its reasons.
 */
export function understand(decoded: Decoded, terms: Terms): Understood {
  if (decoded.kind === 'undecodable') return { kind: 'dead', reason: decoded.reason }
  const record = decoded.value as { merchantId: string }
  const merchant = isIdentifier(record.merchantId) ? terms.get(record.merchantId) : undefined
  if (!merchant) return { kind: 'dead', reason: 'unknown-merchant' }
  switch (decoded.name) {
    case 'in.payoutd.PayoutRequested':
      return payout(record as PayoutRequested, merchant)
    case 'in.payoutd.PayoutCancelRequested': {
      const { merchantId, payoutId, reason, requestedBy } = record as PayoutCancelRequested
      if (!isIdentifier(payoutId)) return { kind: 'dead', reason: 'bad-payout-id' }
      return {
        kind: 'cancel',
        merchantId,
        payoutId,
        why: words({ by: cutText(requestedBy, MOST.requestedBy), reason: cutText(reason, MOST.reason) }),
      }
    }
    case 'in.payoutd.PayoutBatchDeclared': {
      const declaration = record as PayoutBatchDeclared
      if (!isIdentifier(declaration.batchId)) return { kind: 'dead', reason: 'bad-batch-id' }
      if (!isDeclarable(declaration)) return { kind: 'dead', reason: 'bad-declaration' }
      return { kind: 'batch', declaration: { ...declaration, amount: paise(declaration.amount) } }
    }
    default:
      return { kind: 'dead', reason: `not-a-command: ${decoded.name}` }
  }
}

const isDeclarable = ({ rows, amount, refused, fileHash, declaredAt }: PayoutBatchDeclared): boolean =>
  rows >= 0 && refused >= 0 && amount >= 0n && fileHash.length <= MOST.fileHash && isOfThisCentury(declaredAt)

function payout(record: PayoutRequested, terms: MerchantTerms): Understood {
  if (!isIdentifier(record.payoutId)) return { kind: 'dead', reason: 'bad-payout-id' }
  const command: PayoutCommand = { ...record, amount: paise(record.amount) }
  return { kind: 'payout', command, terms, faults: validate(command, terms.limits) }
}
