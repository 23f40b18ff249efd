import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { paise } from '../money.ts'
import type { AmountLimits, PayoutCommand } from './command.ts'
import { validate } from './validate.ts'

const NO_LIMITS: AmountLimits = { minAmount: null, maxAmount: null }

const command = (fields: Partial<PayoutCommand> = {}): PayoutCommand => ({
  payoutId: 'salary-1',
  merchantId: 'acme',
  batchId: 'november',
  fileHash: null,
  beneficiaryId: null,
  rowNumber: 1,
  amount: paise(5_000_000n),
  currency: 'INR',
  accountName: 'आशा राव',
  accountNo: '50100123456789',
  bankCode: 'BANK',
  ifsc: 'HDFC0001234',
  vpa: null,
  phoneNumber: '9876543210',
  payerEmail: 'asha.rao@example.com',
  remark: 'Salary November 2026',
  priority: 0,
  notBefore: null,
  deadline: null,
  metadata: {},
  ...fields,
})

const rules = (fields: Partial<PayoutCommand>, limits = NO_LIMITS): string[] =>
  validate(command(fields), limits).map(({ field, rule }) => `${field}:${rule}`)

test('a command that keeps every rule has no fault', () => {
  assert.deepEqual(rules({}), [])
  assert.deepEqual(rules({ ifsc: null, vpa: 'asha.rao@okaxis' }), [])
  assert.deepEqual(
    rules({ phoneNumber: null, payerEmail: null, accountName: null, remark: null, batchId: null }),
    [],
  )
})

describe('each rule of the contract', () => {
  const broken: [name: string, fields: Partial<PayoutCommand>, fault: string][] = [
    ['an amount of zero', { amount: paise(0) }, 'amount:positive'],
    ['a negative amount', { amount: paise(-100) }, 'amount:positive'],
    ['an amount with paise', { amount: paise(10_050) }, 'amount:whole-rupees'],
    ['an amount beyond all sense', { amount: paise(10n ** 15n + 100n) }, 'amount:size'],
    ['another currency', { currency: 'USD' }, 'currency:currency'],
    ['an empty id of the beneficiary', { beneficiaryId: '' }, 'beneficiaryId:length'],
    ['an id of 65 characters', { beneficiaryId: 'E'.repeat(65) }, 'beneficiaryId:length'],
    ['a name of one character', { accountName: 'A' }, 'accountName:length'],
    ['a name of spaces', { accountName: '     ' }, 'accountName:length'],
    ['a name of 49 characters', { accountName: 'x'.repeat(49) }, 'accountName:length'],
    ['a name with &', { accountName: 'Rao & Sons' }, 'accountName:signature-safe'],
    ['a name with =', { accountName: 'A=accountNo' }, 'accountName:signature-safe'],
    ['a name with a line break', { accountName: 'Asha\nRao' }, 'accountName:signature-safe'],
    ['a name that is no Unicode', { accountName: 'Asha \ud800' }, 'accountName:unicode'],
    ['a short account number', { accountNo: '1234' }, 'accountNo:account-no'],
    ['an account number with a space', { accountNo: '5010 0123' }, 'accountNo:account-no'],
    ['no account number', { accountNo: '' }, 'accountNo:account-no'],
    ['an account number of 36', { accountNo: '1'.repeat(36) }, 'accountNo:account-no'],
    ['a bank code in lower case', { bankCode: 'bank' }, 'bankCode:bank-code'],
    ['a bank code with a space', { bankCode: 'BANK ' }, 'bankCode:bank-code'],
    ['both IFSC and VPA', { vpa: 'asha@okaxis' }, 'ifsc:one-destination'],
    ['neither IFSC nor VPA', { ifsc: null }, 'ifsc:one-destination'],
    ['an IFSC without its zero', { ifsc: 'HDFC1001234' }, 'ifsc:ifsc'],
    ['an IFSC in lower case', { ifsc: 'hdfc0001234' }, 'ifsc:ifsc'],
    ['a VPA without a bank', { ifsc: null, vpa: 'asha@' }, 'vpa:vpa'],
    ['a VPA of one character', { ifsc: null, vpa: 'a@okaxis' }, 'vpa:vpa'],
    ['a phone number from 5', { phoneNumber: '5876543210' }, 'phoneNumber:phone'],
    ['a phone number with +91', { phoneNumber: '+919876543210' }, 'phoneNumber:phone'],
    ['an e-mail without a dot', { payerEmail: 'asha@example' }, 'payerEmail:email'],
    ['an e-mail with one character', { payerEmail: 'a@example.com' }, 'payerEmail:email'],
    ['an e-mail with &', { payerEmail: 'asha&accountNo@example.com' }, 'payerEmail:signature-safe'],
    ['a remark that forges a field', { remark: 'x&amount=1' }, 'remark:signature-safe'],
    ['a remark of 257', { remark: 'x'.repeat(257) }, 'remark:length'],
    ['a batch id that cannot be a key', { batchId: 'november payroll' }, 'batchId:identifier'],
    ['a priority beyond all others', { priority: 1_001 }, 'priority:range'],
    ['a deadline in another age', { deadline: 9e15 }, 'deadline:time'],
    [
      'a deadline before its start',
      { notBefore: 1_795_000_000_000, deadline: 1_794_000_000_000 },
      'deadline:after-not-before',
    ],
  ]
  for (const [name, fields, fault] of broken) {
    test(`${name} is a fault, and the only one`, () => assert.deepEqual(rules(fields), [fault]))
  }
})

test('names count characters as people do, not UTF-16 units', () => {
  assert.deepEqual(rules({ accountName: '😀'.repeat(48) }), [])
})

test('a merchant’s own minimum and maximum apply to the paisa', () => {
  const limits = { minAmount: paise(10_000), maxAmount: paise(20_000) }
  assert.deepEqual(rules({ amount: paise(9_900) }, limits), ['amount:minimum'])
  assert.deepEqual(rules({ amount: paise(10_000) }, limits), [])
  assert.deepEqual(rules({ amount: paise(20_000) }, limits), [])
  assert.deepEqual(rules({ amount: paise(20_100) }, limits), ['amount:maximum'])
})

test('validate returns all faults of a command at once', () => {
  const faults = rules({
    amount: paise(150),
    currency: 'EUR',
    accountNo: '1',
    ifsc: 'X',
    phoneNumber: '1',
    payerEmail: 'x',
  })
  assert.deepEqual(faults, [
    'amount:whole-rupees',
    'currency:currency',
    'accountNo:account-no',
    'ifsc:ifsc',
    'phoneNumber:phone',
    'payerEmail:email',
  ])
})

test('a fault never shows whole bank details', () => {
  const secrets = {
    accountNo: '50100-123456789',
    phoneNumber: '15550001111',
    payerEmail: 'asha.rao.private@example',
    accountName: 'Asha&Rao',
  }
  const shown = JSON.stringify(
    validate(command({ ...secrets, ifsc: null, vpa: 'asha.rao.secret@@okaxis' }), NO_LIMITS),
  )
  for (const secret of [...Object.values(secrets), 'asha.rao.secret'])
    assert.ok(!shown.includes(secret), shown)
})

test('the fault about & says what to write instead', () => {
  const [fault] = validate(command({ accountName: 'Rao & Sons' }), NO_LIMITS)
  assert.match(fault?.message ?? '', /"Rao & Sons" becomes "Rao and Sons"/)
})

test('no fault shows a whole account number, in whichever field it stands', () => {
  const fields = [
    ...(['currency', 'beneficiaryId', 'accountName', 'accountNo', 'bankCode', 'ifsc', 'vpa'] as const),
    ...(['phoneNumber', 'payerEmail', 'remark', 'fileHash', 'batchId'] as const),
  ]
  const spoilt = (accountNo: string) => [
    ...[accountNo, `${accountNo}&`, `to a/c ${accountNo} & co`, `${accountNo}${'x'.repeat(600)}`],
    accountNo.replace(/(\d{4})(?=\d)/g, '$1 '),
  ]
  for (const accountNo of ['123456789', '50100123456', '50100123456789']) {
    for (const field of fields) {
      for (const text of spoilt(accountNo)) {
        const vpa = field === 'vpa' ? { ifsc: null } : {}
        for (const fault of validate(command({ ...vpa, [field]: text }), NO_LIMITS)) {
          const digits = fault.found.replace(/\D/g, '')
          assert.ok(digits.length <= 4 || fault.rule === 'length', `${field} ${text}: ${fault.found}`)
          assert.ok(!digits.includes(accountNo), `${field} ${text}: ${fault.found}`)
        }
      }
    }
  }
})
