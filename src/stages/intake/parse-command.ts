import type { AmountLimits, BatchDeclaration, PayoutCommand } from '../../domain/commands/command.ts'
import type { PayPeriod } from '../../domain/commands/pay-period.ts'
import { boundedCommand, isIdentifier, isOfThisCentury, validate } from '../../domain/commands/validate.ts'
import type { Fault } from '../../domain/fault.ts'
import type { PayoutKey } from '../../domain/identifiers.ts'
import { MOST } from '../../domain/limits.ts'
import { type Scrubbed, words } from '../../domain/mask.ts'
import { paise } from '../../domain/money.ts'

import { type IncomingRecord, readHeader } from '../../platform/kafka/records.ts'
import type { Logger } from '../../platform/log.ts'
import type { Decoded } from '../../platform/registry/codec.ts'
import { readTraceparent } from '../../platform/traceparent.ts'
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

export type PayoutRequest = {
  command: PayoutCommand
  terms: MerchantTerms
  faults: Fault[]
  traceparent: string | null
}
export type CancelRequest = PayoutKey & { why: Scrubbed }

/** What one record of `payout.commands` asks for. */
export type ParsedCommand =
  | ({ kind: 'payout' } & PayoutRequest)
  | ({ kind: 'cancel' } & CancelRequest)
  | { kind: 'batch'; declaration: BatchDeclaration }
  | { kind: 'dead'; reason: string }

/** A record, where it came from, and what it asks for. */
export type ReadCommand = { origin: Origin; record: IncomingRecord; parsed: ParsedCommand }

/** The merchant that a record is about; null: none of ours. */
export function merchantOf({ parsed }: Pick<ReadCommand, 'parsed'>): string | null {
  switch (parsed.kind) {
    case 'payout':
      return parsed.command.merchantId
    case 'cancel':
      return parsed.merchantId
    case 'batch':
      return parsed.declaration.merchantId
    case 'dead':
      return null
  }
}

/** The records of `schemas/`, as the codec returns them: long as bigint, timestamps in milliseconds. */
type PayoutRequested = Omit<PayoutCommand, 'amount'> & { amount: bigint }
type PayoutCancelRequested = PayoutKey & { reason: string; requestedBy: string }
type PayoutBatchDeclared = Omit<BatchDeclaration, 'amount'> & { amount: bigint }

export type ReadDeps = {
  terms: Terms
  /** Throws only when the registry does not answer; for bad bytes it returns a value. */
  decode: (value: Buffer | null) => Promise<Decoded>
  log: Logger
}

/** Reads what a record asks for. Rejects only when the registry does not answer. */
export async function readRecord(
  record: IncomingRecord,
  { topic, partition }: Origin,
  { terms, decode, log }: ReadDeps,
): Promise<ParsedCommand> {
  const { unreadable, offset, value, headers } = record
  if (!unreadable) {
    return isTooLarge(record)
      ? { kind: 'dead', reason: 'too-large' }
      : parseCommand(await decode(value), terms, readTraceparent(readHeader(headers, 'traceparent')))
  }
  log.error({ topic, partition, offset, ...unreadable }, 'cannot read this record from Kafka')
  return { kind: 'dead', reason: unreadable.reason }
}

/**
 * What a decoded record asks for. A record is dead only if payoutd cannot even answer it: bytes that do not decode, a request
 * for a merchant that is not ours, an id that cannot be a key. Every other fault is a rejection with its reasons.
 */
export function parseCommand(
  decoded: Decoded,
  terms: Terms,
  traceparent: string | null = null,
): ParsedCommand {
  if (decoded.kind === 'undecodable') return { kind: 'dead', reason: decoded.reason }
  const record = decoded.value as { merchantId: string }
  const merchant = isIdentifier(record.merchantId) ? terms.get(record.merchantId) : undefined
  if (decoded.name === 'in.payoutd.PayoutCancelRequested' && isIdentifier(record.merchantId))
    return cancel(record as PayoutCancelRequested)
  if (!merchant) return { kind: 'dead', reason: 'unknown-merchant' }
  switch (decoded.name) {
    case 'in.payoutd.PayoutRequested':
      return payout(record as PayoutRequested, merchant, traceparent)
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

/** Needs no settings of the merchant: one that has left them, or is yet to join, may have the payout waiting to be sent. */
function cancel({ merchantId, payoutId, reason, requestedBy }: PayoutCancelRequested): ParsedCommand {
  if (!isIdentifier(payoutId)) return { kind: 'dead', reason: 'bad-payout-id' }
  const why = words({ by: cutText(requestedBy, MOST.requestedBy), reason: cutText(reason, MOST.reason) })
  return { kind: 'cancel', merchantId, payoutId, why }
}

const isDeclarable = ({ rows, amount, refused, fileHash, declaredAt }: PayoutBatchDeclared): boolean =>
  rows >= 0 && refused >= 0 && amount >= 0n && fileHash.length <= MOST.fileHash && isOfThisCentury(declaredAt)

function payout(record: PayoutRequested, terms: MerchantTerms, traceparent: string | null): ParsedCommand {
  if (!isIdentifier(record.payoutId)) return { kind: 'dead', reason: 'bad-payout-id' }
  const command = boundedCommand({ ...record, amount: paise(record.amount) })
  return { kind: 'payout', command, terms, faults: validate(command, terms.limits), traceparent }
}
