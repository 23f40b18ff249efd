import { createHash, createHmac, type KeyObject } from 'node:crypto'
import { asSeen } from '../text/text.ts'
import type { PayoutCommand } from './commands/command.ts'
import { nameUuid } from './name-uuid.ts'
import type { Anomaly } from './payout/payout.ts'

export type PayoutKey = { merchantId: string; payoutId: string }

/**
 * A payout as one text: the key of its messages, and its name in errors. Both ids may contain a colon, so two payouts can
 * share this text; use `keyOf` to find a payout in memory.
 */
export const payoutKey = ({ merchantId, payoutId }: PayoutKey): string => `${merchantId}:${payoutId}`

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Writes its length before each part, so no two lists of parts give the same text. Well-formed Unicode, ready to hash. */
export const joined = (parts: readonly (string | null)[]): string =>
  parts
    .map((part) => (part === null ? '-' : `${part.length}:${part}`))
    .join('|')
    .toWellFormed()

/** The first `length` base-32 digits (5 bits each) of the SHA-256 over the parts. */
export function digest(parts: readonly string[], length: number): string {
  const hash = createHash('sha256').update(joined(parts), 'utf8').digest()
  let digits = ''
  let bits = 0
  let value = 0
  for (const byte of hash) {
    value = (value << 8) | byte
    bits += 8
    while (bits >= 5 && digits.length < length) {
      bits -= 5
      digits += BASE32[(value >>> bits) & 31]
    }
    value &= (1 << bits) - 1
  }
  return digits
}

/**
 * The payoutId of a row in a payroll file. The same merchant, batch and reference always give the same id, wherever in the
 * file the row stands, so a corrected file pays only new rows. References that nobody can tell apart are the same.
 */
export const payoutIdFor = (merchantId: string, batchId: string, reference: string): string =>
  `F${digest([merchantId, batchId, asSeen(reference)], 26)}`

/**
 * The order number sent to the gateway: 30 characters of A–Z and 2–7 (contract: String(30)). `series` is 1 unless a person
 * chose to pay under a new order number; all attempts of one series share it.
 */
export const orderNumber = (merchantId: string, payoutId: string, series: number): string =>
  `P${digest([merchantId, payoutId, String(series)], 29)}`

/** Whether it looks like a number from `orderNumber`. */
export const isOrderNumber = (text: string): boolean => /^P[A-Z2-7]{29}$/.test(text)

/** Deterministic, so that every repeat of an event, from any relay, carries the same id. */
export const eventId = (merchantId: string, payoutId: string, version: number): string =>
  nameUuid(joined([merchantId, payoutId, String(version)]))

/** The event id of the one reversal that a payout can have. */
export const reversalEventId = (merchantId: string, payoutId: string): string =>
  nameUuid(joined([merchantId, payoutId, 'reversed']))

/** The same anomaly has the same id, however often it appears. */
export const anomalyId = ({
  merchantId,
  payoutId,
  orderNo,
  kind,
  detail,
}: Pick<Anomaly, 'merchantId' | 'payoutId' | 'orderNo' | 'detail'> & { kind: string }): string =>
  nameUuid(joined(['anomaly', merchantId, payoutId, orderNo, kind, detail]))

/**
 * Keyed hash (32 bytes) over payee and amount: two commands with the same hash ask for the same payment. Names that nobody can
 * tell apart are the same.
 */
export function fingerprint(
  command: Pick<
    PayoutCommand,
    'amount' | 'currency' | 'accountName' | 'accountNo' | 'bankCode' | 'ifsc' | 'vpa'
  >,
  key: KeyObject,
): Buffer {
  const { amount, currency, accountNo, bankCode, ifsc, vpa } = command
  const accountName = command.accountName && asSeen(command.accountName)
  return createHmac('sha256', key)
    .update(joined([amount.toString(), currency, accountName, accountNo, bankCode, ifsc, vpa]), 'utf8')
    .digest()
}

/**
 * Keyed hash (32 bytes) over the content of a command: two commands with different hashes must not pass for the same one. It
 * leaves out the origin (row, file) and the sender's own words, so a corrected file and a second try are repeats. For a
 * refused command it includes them (except the row), because they may be why it was refused.
 */
export function contentHash(
  command: PayoutCommand,
  { refused }: { refused: boolean },
  key: KeyObject,
): Buffer {
  const { batchId, beneficiaryId, phoneNumber, payerEmail, remark, priority, notBefore, deadline } = command
  const words = refused ? [command.fileHash, ...Object.entries(command.metadata).sort().flat()] : []
  const asked = [
    ...[
      'content',
      fingerprint(command, key).toString('hex'),
      batchId,
      beneficiaryId,
      phoneNumber,
      payerEmail,
      remark,
    ],
    ...[priority, notBefore, deadline].map((number) => (number === null ? null : String(number))),
  ]
  return createHmac('sha256', key)
    .update(joined([...asked, ...words]), 'utf8')
    .digest()
}

const SHA_256 = /^[0-9a-f]{64}$/

/**
 * 64 bits of the file's hash: enough to tell files apart. Null: the command came in no file. A text that is no SHA-256 names none: it
 * may be what a program writes into every command.
 */
export function fileMark({ fileHash }: Pick<PayoutCommand, 'fileHash'>): bigint | null {
  const hex = fileHash?.toLowerCase()
  return hex === undefined || !SHA_256.test(hex) ? null : BigInt.asIntN(64, BigInt(`0x${hex.slice(0, 16)}`))
}

/**
 * Keyed hash (32 bytes) over the destination alone, to find other payouts to the same beneficiary. All spellings that people
 * and spreadsheets use give the same hash: they drop zeros before an account number, and banks put them back. An account number
 * is unique within its bank, which the first four letters of an IFSC name, so the branch does not count. If there is a VPA, it
 * alone identifies the payee, whatever account number the gateway wants beside it.
 */
export const payeeHash = (command: PayoutCommand, key: KeyObject): Buffer =>
  beneficiaryHash(
    command.vpa === null
      ? {
          accountNo: command.accountNo.replace(/^0+(?=.)/, '').toUpperCase(),
          ifsc: command.ifsc?.slice(0, 4) ?? null,
          vpa: null,
        }
      : { accountNo: '', ifsc: null, vpa: command.vpa.toLowerCase() },
    key,
  )

/** The same over the destination exactly as written: after any change it may be another beneficiary. */
export function beneficiaryHash(
  { accountNo, ifsc, vpa }: Pick<PayoutCommand, 'accountNo' | 'ifsc' | 'vpa'>,
  key: KeyObject,
): Buffer {
  return createHmac('sha256', key)
    .update(joined(['beneficiary', accountNo, ifsc, vpa]), 'utf8')
    .digest()
}

/**
 * Keyed hash (32 bytes) of the beneficiary's own id, which stays when the bank details change. Ids that nobody can tell apart are
 * the same, with or without zeros before them, which spreadsheets drop. Null: the command has none.
 */
export function beneficiaryIdHash({ beneficiaryId }: PayoutCommand, key: KeyObject): Buffer | null {
  if (beneficiaryId === null) return null
  return createHmac('sha256', key)
    .update(joined(['beneficiaryId', asSeen(beneficiaryId).replace(/^0+(?=.)/, '')]), 'utf8')
    .digest()
}
