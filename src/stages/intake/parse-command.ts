import type { AmountLimits, PayoutCommand } from '../../domain/commands/command.ts'
import type { PayPeriod } from '../../domain/commands/pay-period.ts'
import { boundedCommand, isIdentifier, isOfThisCentury, validate } from '../../domain/commands/validate.ts'
import type { Fault } from '../../domain/fault.ts'
import { MOST } from '../../domain/limits.ts'
import { type Scrubbed, words } from '../../domain/mask.ts'
import { type Paise, paise } from '../../domain/money.ts'
import type { IncomingRecord } from '../../platform/kafka/records.ts'
import type { Logger } from '../../platform/log.ts'
import type { Decoded } from '../../platform/registry/codec.ts'
import { cutText } from '../../text/text.ts'
import { isTooLarge, type Origin } from './dead-letter.ts'

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
export type ParsedCommand =
  | { kind: 'payout'; command: PayoutCommand; terms: MerchantTerms; faults: Fault[] }
  | { kind: 'cancel'; merchantId: string; payoutId: string; why: Scrubbed }
  | { kind: 'batch'; declaration: BatchDeclaration }
  | { kind: 'dead'; reason: string }

/** The records of `schemas/`, as the codec gives them: long as bigint, timestamps in milliseconds. */
type PayoutRequested = Omit<PayoutCommand, 'amount'> & { amount: bigint }
type PayoutCancelRequested = { merchantId: string; payoutId: string; reason: string; requestedBy: string }
type PayoutBatchDeclared = Omit<BatchDeclaration, 'amount'> & { amount: bigint }

export type ReadDeps = {
  terms: Terms
  /** Throws only when the registry cannot be asked; bad bytes are a value. */
  decode: (value: Buffer | null) => Promise<Decoded>
  log: Logger
}

/** What a record asks for. Rejects only when the registry cannot be asked. */
export async function readRecord(
  record: IncomingRecord,
  { topic, partition }: Origin,
  { terms, decode, log }: ReadDeps,
): Promise<ParsedCommand> {
  const { unreadable, offset, value } = record
  if (!unreadable) {
    return isTooLarge(record)
      ? { kind: 'dead', reason: 'too-large' }
      : parseCommand(await decode(value), terms)
  }
  log.error({ topic, partition, offset, ...unreadable }, 'cannot read this record from Kafka')
  return { kind: 'dead', reason: unreadable.reason }
}

/**
 * What a decoded record asks for. Only what cannot even be answered is dead: bytes nobody can decode, a request for a
 * merchant that is not ours, an id that cannot be a key. Every other fault is a rejection with its reasons.
 */
export function parseCommand(decoded: Decoded, terms: Terms): ParsedCommand {
  if (decoded.kind === 'undecodable') return { kind: 'dead', reason: decoded.reason }
  const record = decoded.value as { merchantId: string }
  const merchant = isIdentifier(record.merchantId) ? terms.get(record.merchantId) : undefined
  if (decoded.name === 'in.payoutd.PayoutCancelRequested' && isIdentifier(record.merchantId))
    return cancel(record as PayoutCancelRequested)
  if (!merchant) return { kind: 'dead', reason: 'unknown-merchant' }
  switch (decoded.name) {
    case 'in.payoutd.PayoutRequested':
      return payout(record as PayoutRequested, merchant)
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

/** Needs nothing of the merchant's settings: who has left them, or is to come, may have the payout waiting to be sent. */
function cancel({ merchantId, payoutId, reason, requestedBy }: PayoutCancelRequested): ParsedCommand {
  if (!isIdentifier(payoutId)) return { kind: 'dead', reason: 'bad-payout-id' }
  const why = words({ by: cutText(requestedBy, MOST.requestedBy), reason: cutText(reason, MOST.reason) })
  return { kind: 'cancel', merchantId, payoutId, why }
}

const isDeclarable = ({ rows, amount, refused, fileHash, declaredAt }: PayoutBatchDeclared): boolean =>
  rows >= 0 && refused >= 0 && amount >= 0n && fileHash.length <= MOST.fileHash && isOfThisCentury(declaredAt)

function payout(record: PayoutRequested, terms: MerchantTerms): ParsedCommand {
  if (!isIdentifier(record.payoutId)) return { kind: 'dead', reason: 'bad-payout-id' }
  const command = boundedCommand({ ...record, amount: paise(record.amount) })
  return { kind: 'payout', command, terms, faults: validate(command, terms.limits) }
}
