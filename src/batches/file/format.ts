import { MOST } from '../../domain/limits.ts'
import { cutText } from '../../text/text.ts'
import { hideDigits } from './hide-digits.ts'

/** A column that payoutd understands, by its documented name. */
export type Column =
  | 'reference'
  | 'beneficiary_id'
  | 'account_name'
  | 'account_no'
  | 'ifsc'
  | 'vpa'
  | 'amount'
  | 'phone'
  | 'email'
  | 'remark'

/** Each column with the other names that payroll systems give it. */
const NAMES: Record<Column, readonly string[]> = {
  reference: ['ref', 'payment_reference'],
  beneficiary_id: ['employee_id', 'vendor_id'],
  account_name: ['name', 'beneficiary_name'],
  account_no: ['account_number', 'beneficiary_account'],
  ifsc: ['ifsc_code'],
  vpa: ['upi', 'upi_id'],
  amount: ['amount_rupees', 'amount_inr'],
  phone: ['phone_number', 'mobile', 'mobile_number'],
  email: ['payer_email', 'e_mail'],
  remark: ['remarks', 'narration'],
}

export const COLUMNS = Object.keys(NAMES) as Column[]
const BY_NAME = new Map(
  COLUMNS.flatMap((column) => [column, ...NAMES[column]].map((name) => [name, column] as const)),
)
/** A column with this prefix is kept with the payout, as metadata under the rest of its name. */
const METADATA = 'meta_'
const KEPT_REFERENCE = `${METADATA}reference`

const NO_HEADER =
  'the first row must contain the names of the columns, but has none of them: reference, account_no, amount, and ifsc or vpa are needed'

const TOO_LONG = `the first row must contain the names of the columns, at most ${MOST.columns}, and none longer than ${MOST.cell} characters`

/** The position of each thing in a record. */
export type Header = {
  width: number
  /** The name of every column, in the form that normal() gives it. */
  names: readonly string[]
  at: Partial<Record<Column, number>>
  /** The columns that make up the reference, in order: the reference column, or those asked for. */
  reference: { name: string; index: number }[]
  metadata: { name: string; index: number }[]
}

/** `Account No ` and `account-no` become `account_no`. */
const normal = (name: string): string =>
  name
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, '_')

/**
 * Parses the first line of a file. `referenceFrom` names columns that together make up the reference if the file has no column
 * for it. Returns every fault at once, each a sentence; a line that is no header has that one fault, which shows nothing of it.
 */
export function readColumns(
  cells: readonly string[],
  referenceFrom: readonly string[],
): Header | { faults: string[] } {
  if (cells.length > MOST.columns || cells.some(({ length }) => length > MOST.cell))
    return { faults: [TOO_LONG] }
  const names = cells.map(normal)
  const wanted = referenceFrom.map(normal)
  if (!names.some((name) => isKnown(name, wanted))) return { faults: [NO_HEADER] }
  const header: Header = { width: cells.length, names, at: {}, reference: [], metadata: [] }
  const faults = twice(names)
  names.forEach((name, index) => {
    const column = BY_NAME.get(name)
    if (column !== undefined) {
      if (header.at[column] !== undefined) faults.push(`two columns mean ${column}: remove one`)
      header.at[column] = index
    } else if (name === KEPT_REFERENCE) {
      faults.push(
        `payoutd stores the reference of each row under "${name}", so no column can have that name: rename it`,
      )
    } else if (isMetadata(name)) {
      header.metadata.push({ name: name.slice(METADATA.length), index })
    } else if (!wanted.includes(name)) {
      faults.push(unknownColumn(cells[index] as string, index))
    }
  })
  for (const name of wanted) {
    const index = names.indexOf(name)
    if (index < 0) faults.push(`there is no column "${name}" to make the reference from`)
    else header.reference.push({ name, index })
  }
  if (header.at.reference !== undefined) {
    if (wanted.length > 0) faults.push('the file has a reference column: do not name others to make it from')
    header.reference = [{ name: 'reference', index: header.at.reference }]
  }
  faults.push(...missing(header, wanted))
  return faults.length > 0 ? { faults } : header
}

const isMetadata = (name: string): boolean => name.startsWith(METADATA) && name.length > METADATA.length

const isKnown = (name: string, wanted: readonly string[]): boolean =>
  BY_NAME.has(name) || isMetadata(name) || wanted.includes(name)

function missing({ at, reference }: Header, wanted: readonly string[]): string[] {
  const faults: string[] = []
  if (reference.length === 0 && wanted.length === 0) {
    faults.push(
      'there is no column "reference", which tells each payment of the batch from the others: add one, or name the columns that do (--reference-from employee_id,month)',
    )
  }
  if (at.account_no === undefined)
    faults.push('there is no column "account_no" (the gateway needs it for a VPA too)')
  if (at.amount === undefined) faults.push('there is no column "amount"')
  if (at.ifsc === undefined && at.vpa === undefined) faults.push('there is neither a column "ifsc" nor "vpa"')
  return faults
}

const twice = (names: readonly string[]): string[] =>
  [...new Set(names.filter((name, i) => name !== '' && names.indexOf(name) !== i))].map(
    (name) => `the column "${hideDigits(name)}" appears twice`,
  )

const unknownColumn = (name: string, index: number): string =>
  name.trim() === ''
    ? `column ${index + 1} has no name`
    : `the column "${cutText(hideDigits(name.trim()), 40)}" is not known: rename it, put ${METADATA} before its name to keep it with the payout, or leave it out`
