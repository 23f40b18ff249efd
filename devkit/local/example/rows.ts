import { personName } from './people.ts'
import type { Random } from './random.ts'

/** The columns of an example file, in their order. */
export const HEADER = [
  'reference',
  'account_name',
  'account_no',
  'ifsc',
  'vpa',
  'amount',
  'phone',
  'email',
  'remark',
  'meta_department',
] as const

export type Cells = Record<(typeof HEADER)[number], string>

const BANKS = ['HDFC', 'SBIN', 'ICIC', 'UTIB', 'PUNB', 'KKBK', 'BARB', 'CNRB', 'IDFB', 'YESB', 'UBIN', 'IOBA']
/** Not of any real payment app, in case a file ever reaches a real gateway. */
const HANDLES = ['examplebank', 'exampleupi']
const DEPARTMENTS = ['Accounts', 'Sales', 'Stores', 'Production', 'Transport', 'Design']

/** One amount, in one of the ways people write it. */
export function written(rupees: number, random: Random): string {
  const indian = rupees.toLocaleString('en-IN')
  return random.of([
    String(rupees),
    String(rupees),
    indian,
    indian,
    `${indian}.00`,
    `${rupees}.00`,
    `₹${indian}`,
    `₹ ${indian}.00`,
    `Rs. ${indian}`,
    `Rs ${rupees}`,
    `INR ${rupees}`,
    `${indian}/-`,
    rupees.toLocaleString('en-US'),
    ` ${rupees} `,
  ])
}

/** A correct row that is paid without incident. `number` determines its reference. */
export function ordinaryRow(number: number, random: Random): Cells {
  const byVpa = random.below(8) === 0
  const mobile = `${random.of(['60000', '70000', '80000', '90000'])}${random.digits(5)}`
  return {
    reference: `EMP${String(number).padStart(6, '0')}`,
    account_name: personName(random),
    account_no: accountNo(random),
    ifsc: byVpa ? '' : `${random.of(BANKS)}0${random.digits(6)}`,
    vpa: byVpa ? `pay.${number}@${random.of(HANDLES)}` : '',
    amount: written(8_000 + 500 * random.below(180), random),
    phone: random.of(['', mobile, mobile, `+91 ${mobile.slice(0, 5)} ${mobile.slice(5)}`]),
    email: random.below(3) === 0 ? `employee.${number}@example.com` : '',
    remark: random.of(['', 'Salary November 2026', 'Salary, November 2026', 'Nov salary']),
    meta_department: random.of(DEPARTMENTS),
  }
}

/** Some have leading zeros, which count; none begins like the sandbox's magic accounts. */
const accountNo = (random: Random): string =>
  `${random.of(['00', '1', '2', '3', '4', '50', '62'])}${random.digits(10 + random.below(3))}`
