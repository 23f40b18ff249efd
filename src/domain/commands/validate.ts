import { cutText } from '../../text/text.ts'
import type { Fault } from '../fault.ts'
import type { Instant } from '../instant.ts'
import { MOST } from '../limits.ts'
import { EMPTY, maskAccount, maskVpa, scrub } from '../mask.ts'
import { formatRupees } from '../money.ts'
import { unsafeTextIn } from '../unsafe-text.ts'
import type { AmountLimits, PayoutCommand } from './command.ts'

/** IFSC: four letters of the bank, a zero, six of the branch (Reserve Bank of India). */
export const IFSC = /^[A-Z]{4}0[A-Z0-9]{6}$/
export const VPA = /^[A-Za-z0-9._-]{2,256}@[A-Za-z][A-Za-z0-9]{1,63}$/
export const ACCOUNT_NO = /^[A-Za-z0-9]{5,35}$/
const PHONE = /^[6-9][0-9]{9}$/
/** The first dot after the first character ends the second run: two runs that can trade characters take quadratic time. */
const EMAIL = /^[^@\s]{2,}@[^@\s][^@\s.]*\.[^@\s]+$/
const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}$/
const MAX_AMOUNT = 10n ** 15n
const MAX_TEXT = 256
const MAX_BENEFICIARY_ID = 64
const MOST_PRIORITY = 1_000
const EARLIEST = Date.UTC(2000, 0)
const LATEST = Date.UTC(2100, 0)

export const isOfThisCentury = (at: Instant): boolean => at >= EARLIEST && at < LATEST

const hide = () => '••••'

/** A code that shows no digit: if columns were swapped, an account number may stand here. */
const shape = (text: string, most: number) =>
  text.length > most
    ? `more than ${most} characters`
    : (text.includes('@') ? maskVpa(text) : text).replace(/\p{N}/gu, '•') || EMPTY

/** A bank detail may stand in any text, so this never returns a text unmasked. */
function show(text: string): string {
  const safe = scrub(cutText(text, MOST.remark))
  return safe.length > 40 ? `${cutText(safe, 40)}…` : safe || EMPTY
}

/** Whether a payoutId, merchantId or batchId can be a key. A command whose id cannot be one has no result to publish. */
export const isIdentifier = (text: string): boolean => text.length <= MOST.identifier && IDENTIFIER.test(text)

/**
 * Checks every rule of the gateway contract ("Create payout order", "Limits") and of this product. Returns all faults at
 * once, in the order of the fields. An empty list: the command can be sent.
 */
export function validate(given: PayoutCommand, limits: AmountLimits): Fault[] {
  const command = boundedCommand(given)
  return [
    ...amountFaults(command, limits),
    ...must(
      command.currency === 'INR',
      'currency',
      'currency',
      'must be INR',
      shape(command.currency, MOST.currency),
    ),
    ...optional(command.beneficiaryId, (id) =>
      must(
        id.length >= 1 && id.length <= MAX_BENEFICIARY_ID,
        'beneficiaryId',
        'length',
        `must be 1 to ${MAX_BENEFICIARY_ID} characters`,
        `${id.length} characters`,
      ),
    ),
    ...nameFaults(command.accountName),
    ...must(
      ACCOUNT_NO.test(command.accountNo),
      'accountNo',
      'account-no',
      'must be 5 to 35 letters and digits (a VPA payout needs it too)',
      maskAccount(command.accountNo),
    ),
    ...must(
      command.bankCode === 'BANK',
      'bankCode',
      'bank-code',
      'must be exactly BANK',
      shape(command.bankCode, MOST.bankCode),
    ),
    ...destinationFaults(command),
    ...optional(command.phoneNumber, (phone) =>
      must(
        PHONE.test(phone),
        'phoneNumber',
        'phone',
        'must be 10 digits, the first 6 to 9',
        maskAccount(phone),
      ),
    ),
    ...optional(command.payerEmail, (email) => [
      ...must(
        EMAIL.test(email) && email.length <= MAX_TEXT,
        'payerEmail',
        'email',
        'must have at least 2 characters, an @ and a dot after it',
        maskVpa(email),
      ),
      ...forging('payerEmail', email, maskVpa),
    ]),
    ...optional(command.remark, (remark) => [
      ...must(
        [...remark].length <= MAX_TEXT,
        'remark',
        'length',
        `must be at most ${MAX_TEXT} characters`,
        show(remark),
      ),
      ...forging('remark', remark, show),
    ]),
    ...optional(command.batchId, (batchId) =>
      must(
        isIdentifier(batchId),
        'batchId',
        'identifier',
        'must be 1 to 64 of A–Z a–z 0–9 . _ : / -',
        show(batchId),
      ),
    ),
    ...must(
      Math.abs(command.priority) <= MOST_PRIORITY,
      'priority',
      'range',
      `must be from -${MOST_PRIORITY} to ${MOST_PRIORITY}`,
      String(command.priority),
    ),
    ...scheduleFaults(command),
    ...optional(command.fileHash, (hash) =>
      must(
        hash.length <= MOST.fileHash,
        'fileHash',
        'length',
        `must be at most ${MOST.fileHash} characters`,
        show(hash),
      ),
    ),
    ...metadataFaults(command),
  ]
}

const BOUNDED = [
  ...([
    'batchId',
    'currency',
    'beneficiaryId',
    'accountName',
    'accountNo',
    'bankCode',
    'ifsc',
    'vpa',
  ] as const),
  ...(['phoneNumber', 'payerEmail', 'remark', 'fileHash'] as const),
]

/**
 * The command with each text cut to its limit plus two units, so that `validate` still sees it is too long, and with at most
 * one metadata field more than allowed. payoutd masks, hashes, seals and stores nothing beyond that.
 */
export const boundedCommand = (command: PayoutCommand): PayoutCommand => ({
  ...command,
  ...Object.fromEntries(BOUNDED.map((field) => [field, cutMore(command[field], MOST[field])])),
  metadata: Object.fromEntries(
    Object.entries(command.metadata)
      .slice(0, MOST.metadataFields + 1)
      .map(([name, text]) => [cutMore(name, MOST.metadataName), cutMore(text, MOST.metadataValue)]),
  ),
})

/** A text longer than `most` stays longer than `most`. */
function cutMore<T extends string | null>(text: T, most: number): T {
  return (text === null ? null : cutText(text, most + 2)) as T
}

function metadataFaults({ metadata }: PayoutCommand): Fault[] {
  const fields = Object.entries(metadata)
  const fits = ([name, text]: [string, string]) =>
    name.length <= MOST.metadataName && text.length <= MOST.metadataValue
  return must(
    fields.length <= MOST.metadataFields && fields.every(fits),
    'metadata',
    'length',
    `must be at most ${MOST.metadataFields} fields, a name at most ${MOST.metadataName} and a text at most ${MOST.metadataValue} characters`,
    `${fields.length} fields`,
  )
}

function amountFaults({ amount }: PayoutCommand, { minAmount, maxAmount }: AmountLimits): Fault[] {
  const found = `${amount} paise`
  if (amount <= 0n) return [{ field: 'amount', rule: 'positive', message: 'must be more than zero', found }]
  if (amount > MAX_AMOUNT)
    return [{ field: 'amount', rule: 'size', message: `must be at most ${MAX_AMOUNT} paise`, found }]
  return [
    ...must(
      amount % 100n === 0n,
      'amount',
      'whole-rupees',
      'must be a multiple of 100 paise: the gateway pays whole rupees',
      found,
    ),
    ...must(
      minAmount === null || amount >= minAmount,
      'amount',
      'minimum',
      `must be at least ${formatRupees(minAmount ?? amount)}`,
      found,
    ),
    ...must(
      maxAmount === null || amount <= maxAmount,
      'amount',
      'maximum',
      `must be at most ${formatRupees(maxAmount ?? amount)}`,
      found,
    ),
  ]
}

function nameFaults(name: string | null): Fault[] {
  return optional(name, (text) => {
    const length = [...text.trim()].length
    return [
      ...must(
        length >= 2 && length <= 48 && text.length <= MOST.accountName,
        'accountName',
        'length',
        'must be 2 to 48 characters',
        `${length} characters`,
      ),
      ...forging('accountName', text, hide),
    ]
  })
}

function destinationFaults({ ifsc, vpa }: PayoutCommand): Fault[] {
  if (ifsc !== null && vpa !== null) {
    return [
      { field: 'ifsc', rule: 'one-destination', message: 'give an IFSC or a VPA, not both', found: 'both' },
    ]
  }
  if (ifsc === null && vpa === null) {
    return [{ field: 'ifsc', rule: 'one-destination', message: 'give an IFSC or a VPA', found: 'neither' }]
  }
  return [
    ...optional(ifsc, (code) =>
      must(
        IFSC.test(code),
        'ifsc',
        'ifsc',
        'must be 4 capital letters, a zero, then 6 capital letters or digits',
        shape(code, MOST.ifsc),
      ),
    ),
    ...optional(vpa, (address) =>
      must(VPA.test(address), 'vpa', 'vpa', 'must look like name@bank', maskVpa(address)),
    ),
  ]
}

function scheduleFaults({ notBefore, deadline }: PayoutCommand): Fault[] {
  const range = (field: string, at: number) =>
    must(isOfThisCentury(at), field, 'time', 'must be milliseconds since 1970, of this century', String(at))
  const faults = [
    ...optional(notBefore, (at) => range('notBefore', at)),
    ...optional(deadline, (at) => range('deadline', at)),
  ]
  if (faults.length > 0 || notBefore === null || deadline === null) return faults
  return must(
    notBefore < deadline,
    'deadline',
    'after-not-before',
    'must be later than notBefore',
    new Date(deadline).toISOString(),
  )
}

function forging(field: string, text: string, display: (text: string) => string): Fault[] {
  const forgery = unsafeTextIn(text)
  return forgery ? [{ field, ...forgery, found: cutText(display(text), MOST.found) }] : []
}

function must(holds: boolean, field: string, rule: string, message: string, found: string): Fault[] {
  return holds ? [] : [{ field, rule, message, found: cutText(found, MOST.found) }]
}

function optional<T>(value: T | null, check: (value: T) => Fault[]): Fault[] {
  return value === null ? [] : check(value)
}
