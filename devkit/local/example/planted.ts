import type { Random } from './random.ts'
import { type Cells, written } from './rows.ts'

/** The expected result of a row. `column` and `rule` say what is wrong with a rejected one. */
export type Expected = {
  outcome: 'rejected' | 'duplicate' | 'failed' | 'paid'
  column: string
  rule: string
  why: string
}

/** A way to make an ordinary row special. `extra` is an additional cell at the end. */
export type Plant = {
  change: (cells: Cells, random: Random) => Partial<Cells> & { extra?: string }
  expected: Expected
}

const wrong = (column: keyof Cells | '', rule: string, why: string, change: Plant['change']): Plant => ({
  change,
  expected: { outcome: 'rejected', column, rule, why },
})
const cell = (column: keyof Cells, rule: string, text: string, why: string): Plant =>
  wrong(column, rule, why, () => ({ [column]: text }))
const byIfsc = { ifsc: 'HDFC0001234', vpa: '' }

/** A row that breaks each rule of each column, one rule per row. */
export const WRONG: readonly Plant[] = [
  cell('reference', 'required', '', 'no reference'),
  cell('reference', 'length', `SALARY-${'X'.repeat(60)}`, 'a reference of more than 64 characters'),
  cell('reference', 'text', 'EMP\n000', 'a reference with a line break'),
  cell('account_name', 'length', 'A', 'a name of one character'),
  cell(
    'account_name',
    'length',
    'Venkatanarasimharajuvaripeta Srirangapatnamwala Sr',
    'a name of more than 48 characters',
  ),
  cell('account_name', 'signature-safe', 'Rao & Sons', 'a name with &, which could forge a signed field'),
  cell('account_name', 'signature-safe', 'Asha=Rao', 'a name with =, which could forge a signed field'),
  cell('account_name', 'signature-safe', 'Asha\nRao', 'a name with a line break'),
  cell('account_no', 'required', '', 'no account number'),
  wrong('account_no', 'required', 'a VPA without account number', () => ({
    account_no: '',
    ifsc: '',
    vpa: 'asha@examplebank',
  })),
  cell('account_no', 'account-no', '1234', 'an account number of fewer than 5 characters'),
  cell('account_no', 'account-no', '5010-0123-4567', 'an account number with dashes'),
  cell('account_no', 'scientific', '5.01002E+13', 'an account number shortened by a spreadsheet'),
  wrong('ifsc', 'one-destination', 'neither IFSC nor VPA', () => ({ ifsc: '', vpa: '' })),
  wrong('ifsc', 'one-destination', 'both IFSC and VPA', () => ({
    ifsc: 'HDFC0001234',
    vpa: 'asha@examplebank',
  })),
  wrong('ifsc', 'ifsc', 'an IFSC without the zero in fifth place', () => ({
    ...byIfsc,
    ifsc: 'HDFC1001234',
  })),
  wrong('ifsc', 'ifsc', 'an IFSC that is too short', () => ({ ...byIfsc, ifsc: 'SBIN00123' })),
  wrong('vpa', 'vpa', 'a VPA without @', () => ({ ifsc: '', vpa: 'asha.examplebank' })),
  cell('amount', 'required', '', 'no amount'),
  cell('amount', 'positive', '0', 'an amount of zero'),
  cell('amount', 'positive', '-45,000', 'a negative amount'),
  cell('amount', 'whole-rupees', '45,000.50', 'an amount with paise'),
  cell('amount', 'scientific', '1.2E+05', 'an amount shortened by a spreadsheet'),
  cell('amount', 'grouping', '1,0000', 'commas in the wrong place'),
  cell('amount', 'amount-format', '45k', 'an amount in words'),
  cell('amount', 'amount-format', '45.000,00', 'an amount with European separators'),
  cell('amount', 'ascii-digits', '४५,०००', 'an amount in Devanagari digits'),
  cell('amount', 'size', '12345678901234', 'an amount of more than 13 digits'),
  cell('phone', 'phone', '98765', 'a phone number that is too short'),
  cell('phone', 'phone', '1234567890', 'a phone number that begins with 1'),
  cell('email', 'email', 'asha.example.com', 'an e-mail address without @'),
  cell('email', 'email', 'a@example.com', 'an e-mail address with one character before the @'),
  cell('email', 'signature-safe', 'asha&ravi@example.com', 'an e-mail address with &'),
  cell('remark', 'length', 'Salary '.repeat(40), 'a remark of more than 256 characters'),
  cell('remark', 'signature-safe', 'month=11', 'a remark with ='),
  cell('meta_department', 'text', 'Accounts\nand Audit', 'metadata with a line break'),
  wrong('', 'columns', 'a cell too many, as by a comma outside quotes', () => ({ extra: '000' })),
]

/** `nn` and four more digits, so that beneficiaries differ. */
const account = (code: string, nn: string) => (_: Cells, random: Random) => ({
  account_no: `99990000${code}${nn}${random.digits(4)}`,
  ...byIfsc,
})
const magic = (code: string, why: string, nn = '00'): Plant => ({
  change: account(code, nn),
  expected: { outcome: 'paid', column: '', rule: '', why: `account ${code}: ${why}` },
})
const failing: Plant = {
  change: account('01', '00'),
  expected: { outcome: 'failed', column: '', rule: '', why: 'account 01: the gateway says that it failed' },
}
const times = (count: number, plant: Plant): Plant[] => Array.from({ length: count }, () => plant)

/** Rows that the sandbox treats specially because of their account numbers. */
export const MAGIC: readonly Plant[] = [
  ...times(6, failing),
  ...times(5, magic('02', 'no callback comes; a query finds the end')),
  ...times(5, magic('03', 'the callback comes twice')),
  ...times(3, magic('04', 'the callback comes before the answer to apply')),
  ...times(3, magic('05', 'accepted, but apply is never answered')),
  ...times(3, magic('06', 'the first apply hangs and is not accepted; sent again once that is certain')),
  ...times(
    2,
    magic('07', 'the first apply gets HTTP 500 and is not accepted; sent again once that is certain'),
  ),
  ...times(2, magic('08', 'accepted, but apply gets HTTP 500')),
  ...times(2, magic('09', 'accepted, but the answer has a wrong signature')),
  ...times(2, magic('10', 'accepted, but the answer comes half a second late', '05')),
  ...times(2, magic('11', 'answered TOO_FAST twice, then accepted', '02')),
  ...times(2, magic('12', 'a callback says paid, the next says failed: stays paid, with an anomaly')),
  ...times(2, magic('13', 'a callback has a wrong signature, the next a good one')),
  ...times(2, magic('14', 'the callback has another amount: an anomaly, paid once a query says so')),
  ...times(2, magic('15', 'accepted, but the connection is reset')),
  ...times(2, magic('16', 'stays processing for 3 seconds', '03')),
]

const repeat = (why: string, change: Plant['change']): Plant => ({
  change,
  expected: { outcome: 'duplicate', column: '', rule: '', why },
})

/** Rows made from an earlier ordinary row: the same payment again, or another under the same reference. */
export const REPEATS: readonly Plant[] = [
  ...times(
    8,
    repeat('the same row again', () => ({})),
  ),
  ...times(
    4,
    repeat('the same payment, its amount written differently', ({ amount }, random) => ({
      amount: written(Number(amount.replace(/^\D+|\.00$|\/-$/g, '').replace(/\D/g, '')), random),
    })),
  ),
  ...times(
    2,
    repeat('the same payment, its IFSC in small letters', ({ ifsc }) => ({ ifsc: ifsc.toLowerCase() })),
  ),
  wrong('reference', 'reference-reused', 'a reference used before for another amount', () => ({
    amount: '1,23,456',
  })),
  wrong('reference', 'reference-reused', 'a reference used before for another account', (_, random) => ({
    account_no: `77${random.digits(10)}`,
  })),
]
