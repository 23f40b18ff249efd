import assert from 'node:assert/strict'
import { test } from 'node:test'
import { payoutIdFor } from '../../domain/identifiers.ts'
import { MOST } from '../../domain/limits.ts'
import { paise } from '../../domain/money.ts'
import { type Header, readColumns } from './format.ts'
import { type PayrollBatch, readRow } from './row.ts'

const BATCH: PayrollBatch = {
  merchantId: 'acme',
  batchId: 'nov',
  limits: { minAmount: paise(10_000n), maxAmount: null },
}
const NAMES = [
  'reference',
  'beneficiary_id',
  'account_name',
  'account_no',
  'ifsc',
  'vpa',
  'amount',
  'phone',
  'email',
  'remark',
  'meta_team',
]
const GOOD = {
  reference: 'EMP1',
  beneficiary_id: 'E-17',
  account_name: 'आशा राव',
  account_no: '00501001234567',
  ifsc: 'HDFC0001234',
  vpa: '',
  amount: '₹1,00,000.00',
  phone: '+91 98765 43210',
  email: 'asha@example.com',
  remark: 'Salary, November',
  meta_team: 'Sales',
}

const header = (names = NAMES, from: string[] = []): Header => readColumns(names, from) as Header
const read = (changes: Partial<typeof GOOD> = {}) =>
  readRow(Object.values({ ...GOOD, ...changes }), 7, header(), BATCH)
const faults = (changes: Partial<typeof GOOD>): string[] => {
  const row = read(changes)
  return row.kind === 'refused' ? row.faults.map(({ column, rule }) => `${column}: ${rule}`) : [row.kind]
}

test('a good row becomes a command, with every cell in its place', () => {
  const row = read()
  assert.equal(row.kind, 'payable')
  if (row.kind !== 'payable') return
  const { payoutId, ...command } = row.command
  assert.match(payoutId, /^F[A-Z2-7]{26}$/)
  assert.deepEqual(command, {
    merchantId: 'acme',
    batchId: 'nov',
    rowNumber: 7,
    fileHash: null,
    beneficiaryId: 'E-17',
    amount: 10_000_000n,
    currency: 'INR',
    accountName: 'आशा राव',
    accountNo: '00501001234567',
    bankCode: 'BANK',
    ifsc: 'HDFC0001234',
    vpa: null,
    phoneNumber: '9876543210',
    payerEmail: 'asha@example.com',
    remark: 'Salary, November',
    priority: 0,
    notBefore: null,
    deadline: null,
    metadata: { team: 'Sales', reference: 'EMP1' },
  })
})

test('spaces around cells and an IFSC in lower case do not matter', () => {
  const row = read({
    reference: ' EMP1 ',
    ifsc: ' hdfc0001234 ',
    account_no: ' 00501001234567\u00a0',
    meta_team: ' Sales ',
  })
  assert.deepEqual(row, read())
  for (const phone of ['098765-43210', '9876543210', '+919876543210', '919876543210'])
    assert.deepEqual(read({ phone }), read(), phone)
  for (const phone of ['9198765432', '99919876543210', '0098765432100'])
    assert.notDeepEqual(read({ phone }), read(), phone)
})

test('the payoutId depends on merchant, batch and reference, and on nothing else in the row', () => {
  const idOf = (row: ReturnType<typeof readRow>) =>
    row.kind === 'payable' ? row.command.payoutId : assert.fail()
  const cells = Object.values(GOOD)
  const other = (batch: Partial<PayrollBatch>) => idOf(readRow(cells, 7, header(), { ...BATCH, ...batch }))
  assert.equal(idOf(read({ amount: '500', account_no: '777777' })), idOf(read()))
  assert.equal(idOf(readRow(cells, 99, header(), BATCH)), idOf(read()))
  assert.equal(
    new Set([
      idOf(read()),
      idOf(read({ reference: 'EMP2' })),
      other({ batchId: 'dec' }),
      other({ merchantId: 'bcme' }),
    ]).size,
    4,
  )
})

test('references that nobody can tell apart give one payoutId, and each stays as it is written', () => {
  for (const [one, ...others] of [
    ['Jos\u00e9 D', 'Jose\u0301 D', 'Jos\u00e9\u2003 D', '\uff2aos\u00e9 D'],
    [
      'EMP7',
      'EMP7\u200b',
      'EM\u00adP7',
      '\u2060EMP\ufeff7',
      'EMP7\u0085',
      'EMP7 \u200b',
      'E\u034fMP\ufe0f7',
      'EMP\uff17',
    ],
    ['EMP 8', 'EMP\u00a08', 'EMP \u2009 8', 'EMP\u20288', 'EMP\u28008'],
    ['EMP-9', 'EMP\u20109', 'EMP\u20119', 'EMP\u22129', 'EMP\uff0d9', 'EMP-9\ufdd0', 'EMP-9\u{13430}'],
    ["D'Souza", 'D\u2019Souza', 'D\u00b4Souza', 'D\u2032Souza', 'D\uff07Souza'],
  ] as const) {
    for (const reference of others) {
      const row = read({ reference })
      assert.equal(row.kind === 'payable' && row.command.payoutId, payoutIdFor('acme', 'nov', one), reference)
      assert.equal(row.kind === 'payable' && row.command.metadata.reference, reference)
      assert.equal(payoutIdFor('acme', 'nov', reference), payoutIdFor('acme', 'nov', one), reference)
    }
  }
  const different = ['EMP7', 'emp7', 'EMP 7', 'EMP-7', 'EMP7\u00b2', 'EMP72', 'EMP8', 'JOSE', 'JOS\u00c9']
  assert.equal(new Set(different.map((each) => payoutIdFor('acme', 'nov', each))).size, different.length)
  assert.deepEqual(faults({ reference: '\u200b\u2060' }), ['reference: required'])
})

test('every fault of a row is reported, under the columns of the file', () => {
  assert.deepEqual(
    faults({ reference: '', account_name: 'A', account_no: '12', ifsc: 'HDFC', amount: 'x', phone: '1' }),
    [
      'reference: required',
      'amount: amount-format',
      'account_name: length',
      'account_no: account-no',
      'ifsc: ifsc',
      'phone: phone',
    ],
  )
})

test('a fault has the name of its column, even if the command calls it something else', () => {
  const long = 'x'.repeat(257)
  assert.deepEqual(faults({ beneficiary_id: long, email: 'asha', remark: long }), [
    'beneficiary_id: length',
    'email: email',
    'remark: length',
  ])
  assert.deepEqual(faults({ ifsc: '', vpa: 'asha' }), ['vpa: vpa'])
  assert.deepEqual(faults({ vpa: 'asha@examplebank' }), ['ifsc: one-destination'])
  assert.deepEqual(faults({ account_no: '', ifsc: 'HDFC' }), ['account_no: required', 'ifsc: ifsc'])
})

test('a refused row shows its number, its reference and its amount, as far as they can be read', () => {
  const readable = (changes: Partial<typeof GOOD>) => {
    const row = read(changes)
    return row.kind === 'refused' ? [row.row, row.reference, row.amount] : [row.kind]
  }
  assert.deepEqual(readable({ ifsc: 'HDFC' }), [7, 'EMP1', 10_000_000n])
  assert.deepEqual(readable({ amount: 'x', reference: ' ' }), [7, null, null])
  assert.deepEqual(readRow([''], 7, header(), BATCH), { kind: 'blank', row: 7 })
})

test('the report says what a person must do beside what it found', () => {
  const only = (changes: Partial<typeof GOOD>) => {
    const row = read(changes)
    return row.kind === 'refused' && row.faults.length === 1 ? row.faults[0] : assert.fail(row.kind)
  }
  assert.deepEqual(only({ account_no: '' }), {
    ...{ column: 'account_no', rule: 'required', message: 'must be given, for a VPA too', found: '(empty)' },
  })
  assert.deepEqual(only({ account_no: '5.01002E+13' }), {
    column: 'account_no',
    rule: 'scientific',
    message:
      'the spreadsheet shortened this account number and lost digits: format the column as text and type it again',
    found: '••••E+13',
  })
  assert.deepEqual(only({ reference: '' }), {
    column: 'reference',
    rule: 'required',
    message: 'must be given: it tells this payment from the others',
    found: '(empty)',
  })
  assert.deepEqual(only({ reference: '-'.repeat(65) }), {
    ...{ column: 'reference', rule: 'length', message: 'must be at most 64 characters' },
    found: '-'.repeat(40),
  })
  assert.equal(only({ reference: 'a\nb' })?.message, 'must be one line of text')
  assert.deepEqual(only({ meta_team: 'x'.repeat(257) }), {
    column: 'meta_team',
    rule: 'text',
    message: 'must be one line of at most 256 characters',
    found: '257 characters',
  })
  assert.equal(only({ amount: `500${' '.repeat(60)}x` })?.found.length, 40)
  assert.deepEqual(only({ amount: 'abc' }), {
    column: 'amount',
    rule: 'amount-format',
    message: 'must be rupees, such as 50000, 50,000 or ₹50,000.00',
    found: 'abc',
  })
})

test('texts may reach their maximum length', () => {
  assert.deepEqual(faults({ reference: '😀'.repeat(64) }), ['payable'])
  assert.deepEqual(faults({ meta_team: 'x'.repeat(256) }), ['payable'])
})

test('the limits of the merchant apply to files too, and the fault shows the amount as written', () => {
  const limits = { minAmount: paise(10_000n), maxAmount: paise(100_000n) }
  for (const [amount, rule] of [
    ['₹ 99', 'minimum'],
    ['5,000/-', 'maximum'],
    ['0.00', 'positive'],
  ] as const) {
    const row = readRow(Object.values({ ...GOOD, amount }), 7, header(), { ...BATCH, limits })
    const found = row.kind === 'refused' && row.faults.map((fault) => [fault.column, fault.rule, fault.found])
    assert.deepEqual(found, [['amount', rule, amount]])
  }
})

test('the fault about an account number that a spreadsheet shortened says so', () => {
  for (const account_no of ['5.01002E+13', '5E+13', '5.01002e13'])
    assert.deepEqual(faults({ account_no }), ['account_no: scientific'])
  for (const account_no of ['55E+13', '5E+13x', '5E', '5.E+13', '5,01E+13'])
    assert.notDeepEqual(faults({ account_no }), ['account_no: scientific'], account_no)
})

test('a refused row never shows a whole account number, VPA, phone or amount cell', () => {
  const row = read({
    account_no: '5010-0123-4567-8901',
    vpa: 'asha.rao.private',
    phone: '12345678901234',
    email: 'asha.private@nowhere',
    amount: '50100123456789 to asha',
  })
  const shown = JSON.stringify(row.kind === 'refused' ? row.faults : assert.fail())
  for (const secret of [
    '5010-0123-4567-8901',
    '0123-4567',
    'asha.rao.private',
    '12345678901234',
    'asha.private@',
    '50100123456789',
  ])
    assert.ok(!shown.includes(secret), secret)
})

test('swapped columns and a number in a remark show no whole account number either', () => {
  const row = read({
    account_no: 'HDFC0001234',
    ifsc: '50100123456',
    remark: 'a/c 60200045678901 & co',
  })
  assert.deepEqual(row.kind === 'refused' && row.faults.map(({ column, found }) => [column, found]), [
    ['ifsc', '•••••••••••'],
    ['remark', 'a/c ••••8901 & co'],
  ])
})

test('an amount that cannot be paid is shown as written, but anything that may be an account number there is not', () => {
  const found = (amount: string) => {
    const row = read({ amount })
    return row.kind === 'refused' ? row.faults.find(({ column }) => column === 'amount')?.found : undefined
  }
  for (const amount of [
    '12000.50',
    '₹12,000.50',
    'Rs.45000.5',
    '-45000',
    '1.2E+05',
    '45.000,00',
    '45000 USD',
    '12345678.90',
    'INR 45000.5',
    'rs 450.5',
    '(450)',
    '−450',
    '450/- rupees',
  ])
    assert.equal(found(amount), amount)
  assert.equal(found('12000 rupees'), '12000 rupees')
  for (const masked of [
    '50100123456.00.',
    '5010-0123-4567',
    '50100123456789.5',
    '५०१००१२३४५६७८९',
    'HDFC0001234',
    '9876543210@examplebank',
    '50100123 to asha',
    'asha 50100123',
    '50100123 rupeess',
    '123456789.01',
  ])
    assert.doesNotMatch(found(masked) ?? '1', /\p{Nd}/u, masked)
})

test('an amount that an unquoted comma splits into two cells, in a row that lacks its last one, is refused, not paid in part', () => {
  const names = ['reference', 'account_no', 'ifsc', 'amount', 'remark', 'meta_team']
  const rulesOf = (...cells: string[]) => {
    const row = readRow(['EMP1', '50100123456', 'HDFC0001234', ...cells], 2, header(names), BATCH)
    return row.kind === 'refused' ? row.faults.map(({ column, rule }) => `${column}: ${rule}`) : row.kind
  }
  const few: [string, string, string][] = [
    ['145', '000', ''],
    ['₹145', '000.00', ''],
    ['101', '45', '000'],
    ['145', '000 /-', ''],
    ['145', '000.50', ''],
    ['145', '000 INR', ''],
    ['145', "'000", ''],
    ['145', '₹000', ''],
    ['145', 'Rs. 000/-', ''],
    ['145', '"000"', ''],
    ['145', '०००', ''],
    ['145/-', '000', ''],
    ['₹ 145 /-', '000', ''],
    ['101', "'45", '\u200b000'],
  ]
  for (const cells of few) assert.deepEqual(rulesOf(...cells), ['amount: split'], cells.join())
  const whole: [string, string, string][] = [
    ['145', '', ''],
    ['145', '0000', ''],
    ['145.00', '000', ''],
    ['1450', '000', ''],
    ['145', '45', ''],
    ['145/-', 'Room 000', ''],
    ['145', "'0000", ''],
  ]
  for (const cells of whole) assert.equal(rulesOf(...cells), 'payable', cells.join())
})

test('a reference that may be an account number or a VPA, because columns were swapped, is masked when its row is refused', () => {
  const shown = (reference: string) => {
    const row = read({ reference, account_no: '12' })
    return row.kind === 'refused' && row.reference
  }
  for (const [written, seen] of [
    ['50100123456789', '••••6789'],
    ['501 0012-3456', '••••3456'],
    ['501\u200b00123456', '••••3456'],
    ['5010 - - - 01234', '••••1234'],
    ['asha.rao@okaxis', 'as••••@okaxis'],
    ['asha.rao\uff20okaxis', 'as••••@okaxis'],
    ['="50100123456789"', '="••••6789"'],
    ["'50100123456789", "'••••6789"],
    ['SB50100123456789', 'SB••••6789'],
    ['50100123456789.00', '••••8900'],
    ['A/C 5010.0123.456789', 'A/C ••••6789'],
    ['50100123456789/HDFC', '••••6789/HDFC'],
    ['5.0100123456789E+13', '••••6789E+13'],
    ['SB ५०१००१२३४५६७८९', 'SB ••••६७८९'],
    ['SB 5010\u20110012\u22123456', 'SB ••••3456'],
    ['E-20261100005', 'E-••••0005'],
    ['2026-11-28-0042', '••••0042'],
  ] as const)
    assert.equal(shown(written), seen, written)
  for (const readable of [
    ...[
      'EMP000017',
      'EMP-2026-0042',
      'INV/2026-11/000123',
      'SAL-2026-11/42',
      '12345678',
      'NOV 2026',
      '5.01002E+13',
    ],
    'Jose\u0301 D',
  ])
    assert.equal(shown(readable), readable)
})

test('a row of another width is identified by its reference if that is the first cell', () => {
  const of = (cells: string[], names = ['reference', 'account_no', 'ifsc', 'amount']) => {
    const row = readRow(cells, 7, header(names), BATCH)
    return row.kind === 'refused' ? row.reference : row.kind
  }
  assert.equal(of(['EMP1', '50100123', 'HDFC0001234']), 'EMP1')
  assert.equal(of(['EMP1', '50100123', 'HDFC0001234', '1', '000']), 'EMP1')
  assert.equal(of(['50100123456789', 'HDFC0001234', '500']), '••••6789')
  assert.equal(of(['A501001234', 'HDFC0001234', '500']), 'A••••1234')
  assert.equal(of(['50100123', 'HDFC0001234', '500']), '50100123')
  assert.equal(of(['', 'HDFC0001234', '500']), null)
  const composed = header(['id', 'month', 'account_no', 'ifsc', 'amount'], ['id', 'month'])
  const short = readRow(['EMP1', 'nov', '50100123'], 7, composed, BATCH)
  assert.equal(short.kind === 'refused' && short.reference, null)
  const second = ['account_no', 'reference', 'ifsc', 'amount']
  assert.equal(of(['50100123', 'HDFC0001234', '500'], second), null)
})

test('a row of another width is refused rather than guessed at; an empty one is no row', () => {
  const cells = Object.values(GOOD)
  const of = (row: string[]) => readRow(row, 7, header(), BATCH)
  const wide = of([...cells, ''])
  assert.deepEqual(wide, {
    kind: 'refused',
    row: 7,
    payoutId: payoutIdFor('acme', 'nov', 'EMP1'),
    reference: 'EMP1',
    amount: null,
    faults: [
      {
        column: '',
        rule: 'columns',
        message: 'must have as many cells as the header: a comma inside a cell needs quotes around the cell',
        found: '12 cells, not 11',
      },
    ],
  })
  assert.equal(of(cells.slice(1)).kind, 'refused')
  assert.equal(of(['']).kind, 'blank')
  assert.equal(of(cells.map(() => ' ')).kind, 'blank')
})

test('a reference made of several columns cannot be confused with another', () => {
  const names = ['id', 'month', 'account_no', 'ifsc', 'amount']
  const row = (id: string, month: string) =>
    readRow([id, month, '50100123', 'HDFC0001234', '500'], 2, header(names, ['id', 'month']), BATCH)
  const good = row('7', 'nov')
  assert.equal(good.kind === 'payable' && good.reference, '7|nov')
  for (const bad of [
    row('', 'nov'),
    row('7', ''),
    row('7|nov', 'x'),
    row('7\uff5cnov', 'x'),
    row('7', '\u200b'),
  ])
    assert.equal(bad.kind, 'refused')
  const bad = row('7|nov', 'x')
  assert.deepEqual(bad.kind === 'refused' && [bad.reference, bad.faults], [
    null,
    [{ column: 'id', rule: 'text', message: 'must not contain "|"', found: '7|nov' }],
  ])
  const unseen = row('7 \u200b', '\u2060 nov')
  assert.equal(unseen.kind === 'payable' && unseen.command.payoutId, payoutIdFor('acme', 'nov', '7|nov'))
  assert.deepEqual(faults({ reference: '7|nov' }), ['payable'])
})

test('a beneficiary_id is a single line: a stray quote would merge it with the rows after it', () => {
  assert.deepEqual(faults({ beneficiary_id: 'B5\nE6,50100,HDFC0000001,600,B6' }), ['beneficiary_id: text'])
})

test('metadata and references are single lines', () => {
  for (const control of ['\n', '\u0000', '\u001f', '\u007f']) {
    assert.deepEqual(faults({ meta_team: `a${control}b` }), ['meta_team: text'])
    assert.deepEqual(faults({ reference: `a${control}b` }), ['reference: text'])
  }
})

test('a cell that is too long is refused before anything reads it, and nothing of it is shown; the reference beside it is', () => {
  for (const name of Object.keys(GOOD) as (keyof typeof GOOD)[]) {
    for (const part of ['1', ' ', 'a@', '-', '₹', '🙂']) {
      const row = read({ [name]: part.repeat(60_000) })
      assert.deepEqual(row.kind === 'refused' && row.faults, [
        {
          column: name,
          rule: 'length',
          message: `must be at most ${MOST.cell} characters`,
          found: `${60_000 * part.length} characters`,
        },
      ])
      assert.equal(row.kind === 'refused' && row.reference, name === 'reference' ? null : 'EMP1')
    }
  }
})
