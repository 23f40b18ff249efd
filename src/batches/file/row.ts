import type { AmountLimits, PayoutCommand } from '../../domain/commands/command.ts'
import { validate } from '../../domain/commands/validate.ts'
import type { Fault } from '../../domain/fault.ts'
import { payoutIdFor } from '../../domain/identifiers.ts'
import { MOST } from '../../domain/limits.ts'
import { EMPTY, maskAccount, scrub, scrubReference } from '../../domain/mask.ts'
import { type Paise, ZERO } from '../../domain/money.ts'
import { rupeesToPaise } from '../../domain/rupees.ts'
import { asSeen, cutText } from '../../text/text.ts'
import type { Column, Header } from './format.ts'
import { hideDigits } from './hide-digits.ts'
import { isSplitAmount, SPLIT_AMOUNT } from './split-amount.ts'

/** What the rows of one file have in common. */
export type PayrollBatch = { merchantId: string; batchId: string; limits: AmountLimits }

/** A rule that a row breaks, in the terms of the file. `found` is safe to show. */
export type RowFault = { column: string; rule: string; message: string; found: string }

/**
 * One row of a file. `row` is its number in a spreadsheet: the header is row 1. In a refused row, `reference` is safe to show;
 * `payoutId` is null if the reference cannot be read, and `amount` if the amount cannot.
 */
export type PayrollRow =
  | { kind: 'blank'; row: number }
  | { kind: 'payable'; row: number; reference: string; command: PayoutCommand }
  | {
      kind: 'refused'
      row: number
      reference: string | null
      payoutId: string | null
      amount: Paise | null
      faults: RowFault[]
    }

const MAX_TEXT = 64
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\u0000-\u001f\u007f]/
/** 5.01002E+13: a long number after a spreadsheet shortened it. */
const SHORTENED = /^\d(\.\d+)?e\+?\d+$/i
const SEPARATOR = '|'
/** Digits and signs, with an optional currency before or word after them. */
const AMOUNT = /^(?:₹|rs\.?|inr)?[\s\p{Nd}.,+\-−()/e]*\p{L}{0,6}$/iu
/** An amount in a payroll has fewer digits, paise included; most account numbers have more. */
const MAX_AMOUNT_DIGITS = 10

const COLUMN_OF: Record<string, Column> = {
  beneficiaryId: 'beneficiary_id',
  accountName: 'account_name',
  accountNo: 'account_no',
  ifsc: 'ifsc',
  vpa: 'vpa',
  phoneNumber: 'phone',
  payerEmail: 'email',
  remark: 'remark',
}

/** Reads one record of the file, and checks every rule of `domain/commands/validate.ts` and those of the file itself. */
export function readRow(
  cells: readonly string[],
  row: number,
  header: Header,
  batch: PayrollBatch,
): PayrollRow {
  if (cells.every((cell) => cell.length <= MOST.cell && cell.trim() === '')) return { kind: 'blank', row }
  const long = tooLong(cells, header)
  if (long.length > 0 || cells.length !== header.width) {
    const faults = long.length > 0 ? long : [width(cells, header)]
    return { kind: 'refused', row, ...namedAnyway(cells, header, batch), amount: null, faults }
  }

  const cell = (column: Column): string => cells[header.at[column] ?? -1]?.trim() ?? ''
  const given = (column: Column): string | null => cell(column) || null
  const { reference, seen, faults } = referenceOf(cells, header)
  const written = rupeesToPaise(cell('amount'))
  const metadata = Object.fromEntries(
    header.metadata.map(({ name, index }) => [name, (cells[index] as string).trim()]),
  )
  const command: PayoutCommand = {
    payoutId: payoutIdFor(batch.merchantId, batch.batchId, seen),
    merchantId: batch.merchantId,
    batchId: batch.batchId,
    rowNumber: row,
    fileHash: null,
    amount: written.kind === 'amount' ? written.amount : ZERO,
    currency: 'INR',
    beneficiaryId: given('beneficiary_id'),
    accountName: given('account_name'),
    accountNo: cell('account_no'),
    bankCode: 'BANK',
    ifsc: given('ifsc')?.toUpperCase() ?? null,
    vpa: given('vpa'),
    phoneNumber: phone(given('phone')),
    payerEmail: given('email'),
    remark: given('remark'),
    priority: 0,
    notBefore: null,
    deadline: null,
    metadata: { ...metadata, reference },
  }
  if (written.kind === 'unreadable') faults.push(amountFault(cell('amount'), written))
  if (CONTROL.test(cell('beneficiary_id'))) {
    faults.push({
      column: 'beneficiary_id',
      rule: 'text',
      message: 'must be one line of text',
      found: 'several lines',
    })
  }
  if (isSplitAmount(cells, header.at.amount))
    faults.push(amountFault(cell('amount'), { rule: 'split', message: SPLIT_AMOUNT }))
  const broken = rulesBroken(command, batch, written.kind === 'amount' ? cell('amount') : null)
  faults.push(...metadataFaults(metadata), ...broken)
  if (faults.length === 0) return { kind: 'payable', row, reference, command }
  const amount = written.kind === 'amount' ? written.amount : null
  return { kind: 'refused', row, ...namedBy({ reference, seen }, batch), amount, faults }
}

/** Checks this before anything else, so that no pattern and no hash sees such a cell. */
const tooLong = (cells: readonly string[], header: Header): RowFault[] =>
  cells.flatMap((text, index) =>
    text.length > MOST.cell
      ? [
          {
            column: header.names[index] ?? '',
            rule: 'length',
            message: `must be at most ${MOST.cell} characters`,
            found: `${text.length} characters`,
          },
        ]
      : [],
  )

/** `amount`: the amount as it is written; null: it cannot be read. */
function rulesBroken(command: PayoutCommand, { limits }: PayrollBatch, amount: string | null): RowFault[] {
  return validate(command, limits).flatMap(({ field, ...fault }: Fault) => {
    if (field === 'amount') return amount === null ? [] : [amountFault(amount, fault)]
    const named = { column: COLUMN_OF[field] ?? field, ...fault }
    return [field === 'accountNo' ? accountFault(command.accountNo, named) : named]
  })
}

const amountFault = (written: string, { rule, message }: { rule: string; message: string }): RowFault => ({
  column: 'amount',
  rule,
  message,
  found: amountAsWritten(written) || EMPTY,
})

/** The most common way to spoil an account number gets a message of its own. */
function accountFault(accountNo: string, fault: RowFault): RowFault {
  if (accountNo === '') return { ...fault, rule: 'required', message: 'must be given, for a VPA too' }
  return SHORTENED.test(accountNo)
    ? {
        column: 'account_no',
        rule: 'scientific',
        message:
          'the spreadsheet shortened this account number and lost digits: format the column as text and type it again',
        found: maskAccount(accountNo),
      }
    : fault
}

/** The reference as it is written, and as a person sees it, part by part, so that no part can look like two. */
function referenceOf(
  cells: readonly string[],
  { reference }: Header,
): { reference: string; seen: string; faults: RowFault[] } {
  const parts = reference.map(({ name, index }) => {
    const text = (cells[index] as string).trim()
    return { name, text, seen: asSeen(text) }
  })
  const composed = parts.length > 1
  const faults = parts.flatMap(({ name, text, seen }) => {
    const fault = (rule: string, message: string) => [
      { column: name, rule, message, found: cutText(scrub(text), 40) || EMPTY },
    ]
    if (seen === '') return fault('required', 'must be given: it tells this payment from the others')
    if ([...text].length > MAX_TEXT) return fault('length', `must be at most ${MAX_TEXT} characters`)
    if (CONTROL.test(text)) return fault('text', 'must be one line of text')
    if (composed && seen.includes(SEPARATOR)) return fault('text', `must not contain "${SEPARATOR}"`)
    return []
  })
  if (faults.length > 0) return { reference: '', seen: '', faults }
  const join = (what: 'text' | 'seen') => parts.map((part) => part[what]).join(SEPARATOR)
  return { reference: join('text'), seen: join('seen'), faults }
}

/** A reference in the form that people may see: if columns are swapped, an account number or a VPA is in its place. */
export const shown = (reference: string): string =>
  reference
    .split(SEPARATOR)
    .map((part) => {
      const seen = asSeen(part)
      const safe = seen.includes('@') ? scrub(seen) : scrubReference(seen)
      return safe === seen ? part : safe
    })
    .join(SEPARATOR)

type RowName = { reference: string; payoutId: string } | { reference: null; payoutId: null }

const namedBy = (
  { reference, seen }: { reference: string; seen: string },
  { merchantId, batchId }: PayrollBatch,
): RowName =>
  reference === ''
    ? { reference: null, payoutId: null }
    : { reference: shown(reference), payoutId: payoutIdFor(merchantId, batchId, seen) }

/** In a row of another width only the first cell is in its place, unless that is the missing one. A long cell stays unread. */
function namedAnyway(cells: readonly string[], header: Header, batch: PayrollBatch): RowName {
  const places = header.reference.map(({ index }) => index)
  const inPlace = cells.length === header.width || places.join() === '0'
  const isLegible = inPlace && places.every((index) => (cells[index] as string).length <= MOST.cell)
  return namedBy(isLegible ? referenceOf(cells, header) : { reference: '', seen: '' }, batch)
}

/** Shows an amount whole, so that it can be corrected; masks anything else that may be in its place. */
function amountAsWritten(text: string): string {
  const digits = text.match(/\p{Nd}/gu)?.length ?? 0
  const safe = AMOUNT.test(text) && digits <= MAX_AMOUNT_DIGITS ? text : hideDigits(text)
  return cutText(safe, 40)
}

const metadataFaults = (metadata: Record<string, string>): RowFault[] =>
  Object.entries(metadata).flatMap(([name, text]) =>
    text.length > 256 || CONTROL.test(text)
      ? [
          {
            column: `meta_${name}`,
            rule: 'text',
            message: 'must be one line of at most 256 characters',
            found: `${text.length} characters`,
          },
        ]
      : [],
  )

/** `+91 98765 43210`, `098765-43210` and `9876543210` are the same phone. */
const phone = (text: string | null): string | null =>
  text === null ? null : text.replace(/[\s-]/g, '').replace(/^(?:\+?91|0)(?=\d{10}$)/, '')

const width = (cells: readonly string[], header: Header): RowFault => ({
  column: '',
  rule: 'columns',
  message: 'must have as many cells as the header: a comma inside a cell needs quotes around the cell',
  found: `${cells.length} cells, not ${header.width}`,
})
