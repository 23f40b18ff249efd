import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COLUMNS, type Header, readColumns } from './format.ts'

const good = (line: string, referenceFrom: string[] = []): Header => {
  const header = readColumns(line.split(','), referenceFrom)
  if ('faults' in header) assert.fail(header.faults.join('\n'))
  return header
}
const faults = (line: string, referenceFrom: string[] = []): string => {
  const header = readColumns(line.split(','), referenceFrom)
  return 'faults' in header ? header.faults.join('\n') : ''
}

test('the columns may stand in any order, in any letter case', () => {
  const { at, width, reference } = good('Amount, ACCOUNT - NO ,ifsc-code,Reference')
  assert.equal(width, 4)
  assert.deepEqual(reference, [{ name: 'reference', index: 3 }])
  assert.deepEqual(at, { amount: 0, account_no: 1, ifsc: 2, reference: 3 })
})

test('the usual other names of a column are understood', () => {
  const { at } = good('ref,beneficiary_name,account_number,upi_id,amount_inr,mobile,e-mail,narration')
  assert.deepEqual(Object.keys(at), [
    'reference',
    'account_name',
    'account_no',
    'vpa',
    'amount',
    'phone',
    'email',
    'remark',
  ])
})

test('a column may have any of the names that payroll systems use for it', () => {
  const names = {
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
  assert.deepEqual(COLUMNS, Object.keys(names))
  const needed = ['reference', 'account_no', 'amount', 'ifsc']
  for (const [column, others] of Object.entries(names))
    for (const name of [column, ...others]) {
      const { at } = good([name, ...needed.filter((each) => each !== column)].join(','))
      assert.equal(at[column as keyof typeof names], 0, name)
    }
})

test('columns marked as metadata are kept under their own names', () => {
  assert.deepEqual(good('reference,account_no,ifsc,amount,Meta_Department').metadata, [
    { name: 'department', index: 4 },
  ])
})

test('a reference can be made from other columns, which then count as known', () => {
  const { reference } = good('Employee ID,month,account_no,ifsc,amount', ['month', 'employee_id'])
  assert.deepEqual(reference, [
    { name: 'month', index: 1 },
    { name: 'employee_id', index: 0 },
  ])
})

test('the column that names the beneficiary can be part of the reference, too', () => {
  const { at, reference } = good('employee_id,month,account_no,ifsc,amount', ['employee_id', 'month'])
  assert.equal(at.beneficiary_id, 0)
  assert.deepEqual(
    reference.map(({ index }) => index),
    [0, 1],
  )
})

test('a file without a reference, an account, an amount or a destination is refused, and the error names all that is missing', () => {
  assert.deepEqual(faults('account_name').split('\n'), [
    'there is no column "reference", which tells each payment of the batch from the others: add one, or name the columns that do (--reference-from employee_id,month)',
    'there is no column "account_no" (the gateway needs it for a VPA too)',
    'there is no column "amount"',
    'there is neither a column "ifsc" nor "vpa"',
  ])
})

test('a column that is unknown, nameless, repeated or ambiguous is refused', () => {
  const beside = (name: string) => faults(`reference,account_no,ifsc,amount,${name}`)
  const unknown = (name: string) =>
    `the column "${name}" is not known: rename it, put meta_ before its name to keep it with the payout, or leave it out`
  assert.equal(beside(' Basic Pay '), unknown('Basic Pay'))
  assert.equal(beside('x'.repeat(41)), unknown('x'.repeat(40)))
  assert.equal(beside('meta_'), unknown('meta_'))
  assert.equal(beside('team_meta_'), unknown('team_meta_'))
  assert.equal(beside(''), 'column 5 has no name')
  assert.equal(beside(' , '), 'column 5 has no name\ncolumn 6 has no name')
  assert.equal(beside('meta_team,meta_team'), 'the column "meta_team" appears twice')
  assert.equal(
    beside('Meta Reference'),
    'payoutd stores the reference of each row under "meta_reference", so no column can have that name: rename it',
  )
  assert.equal(
    faults('reference,account_no,account_number,ifsc,amount'),
    'two columns mean account_no: remove one',
  )
})

test('reference columns that are missing, or that stand beside a reference column, are refused', () => {
  assert.equal(
    faults('account_no,ifsc,amount', ['Employee ID']),
    'there is no column "employee_id" to make the reference from',
  )
  assert.equal(
    faults('reference,id,account_no,ifsc,amount', ['id']),
    'the file has a reference column: do not name others to make it from',
  )
})

test('one known column makes a header: a column of payoutd, a metadata column, or one that was asked for', () => {
  const said = /^the first row must contain the names/
  assert.match(faults('EMP1,500'), said)
  for (const first of ['vpa', 'meta_team']) assert.doesNotMatch(faults(`${first},EMP1,500`), said)
  assert.doesNotMatch(faults('month,EMP1,500', ['Month']), said)
})

test('a file without a header gets one sentence, which shows nothing of its first row', () => {
  const said = faults('EMP1,Asha Rao,50100123456789,asha.rao@examplebank,500')
  assert.match(
    said,
    /^the first row must contain the names of the columns.* reference, account_no, amount, and/,
  )
  assert.doesNotMatch(said, /\n|EMP1|Asha|\d|@/)
})

test('an unknown name is shown without its digits and without any VPA', () => {
  const said = faults(
    'reference,account_no,ifsc,amount,50100123456789,५०१००१२३४५,50100123456789,asha.rao@ok123',
  )
  assert.match(said, /"•+" appears twice/)
  assert.match(said, /"•+" is not known/)
  assert.doesNotMatch(said.replaceAll(/\bcolumn \d/g, ''), /\p{Nd}|asha\.rao/u)
})

test('a header of too many columns, or with a name that is too long, is refused as a whole', () => {
  const wrong = [Array.from({ length: 30_000 }, (_, i) => `meta_${i}`), ['reference', 'é'.repeat(60_000)]]
  for (const names of wrong) {
    const header = readColumns(names, [])
    assert.ok('faults' in header && header.faults.length === 1)
    assert.match(header.faults[0] ?? '', /^the first row must contain the names of the columns, at most/)
  }
})
