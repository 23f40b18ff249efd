import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Header, readHeader } from './format.ts'

const good = (line: string, referenceFrom: string[] = []): Header => {
  const header = readHeader(line.split(','), referenceFrom)
  if ('faults' in header) assert.fail(header.faults.join('\n'))
  return header
}
const faults = (line: string, referenceFrom: string[] = []): string => {
  const header = readHeader(line.split(','), referenceFrom)
  return 'faults' in header ? header.faults.join('\n') : ''
}

test('the columns may stand in any order and be written in any case', () => {
  const { at } = good('Amount, ACCOUNT NO ,ifsc-code,Reference')
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

test('columns marked as metadata are kept under their own names', () => {
  assert.deepEqual(good('reference,account_no,ifsc,amount,Meta_Department').metadata, [
    { name: 'department', index: 4 },
  ])
})

test('a reference can be made from other columns, which are then no unknown ones', () => {
  const { reference } = good('Employee ID,month,account_no,ifsc,amount', ['month', 'employee_id'])
  assert.deepEqual(reference, [
    { name: 'month', index: 1 },
    { name: 'employee_id', index: 0 },
  ])
})

test('a file without a reference, an account, an amount or a destination is refused, with all of it said', () => {
  const said = faults('account_name')
  for (const word of ['reference', 'account_no', 'amount', 'ifsc'])
    assert.match(said, new RegExp(`"${word}"`))
})

test('a column that is unknown, nameless, repeated or ambiguous is refused', () => {
  assert.match(faults('reference,account_no,ifsc,amount,Basic Pay'), /"Basic Pay" is not known/)
  assert.match(faults('reference,account_no,ifsc,amount,'), /column 5 has no name/)
  assert.match(faults('reference,account_no,ifsc,amount,amount'), /"amount" stands twice/)
  assert.match(faults('reference,account_no,account_number,ifsc,amount'), /two columns mean account_no/)
})

test('reference columns that are not there, or beside a reference column, are refused', () => {
  assert.match(faults('account_no,ifsc,amount', ['employee_id']), /no column "employee_id"/)
  assert.match(faults('reference,id,account_no,ifsc,amount', ['id']), /has a reference column/)
})

test('a file without a header is told so in one sentence, and nothing of its first row is shown', () => {
  const said = faults('EMP1,Asha Rao,50100123456789,asha.rao@examplebank,500')
  assert.match(said, /^the first row must be the names of the columns.* reference, account_no, amount, and/)
  assert.doesNotMatch(said, /\n|EMP1|Asha|\d|@/)
})

test('a name that nobody knows is shown without its digits, and no VPA in it is', () => {
  const said = faults(
    'reference,account_no,ifsc,amount,50100123456789,५०१००१२३४५,50100123456789,asha.rao@ok123',
  )
  assert.match(said, /"•+" stands twice/)
  assert.match(said, /"•+" is not known/)
  assert.doesNotMatch(said.replaceAll(/\bcolumn \d/g, ''), /\p{Nd}|asha\.rao/u)
})
