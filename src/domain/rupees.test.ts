import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatRupees, paise } from './money.ts'
import { rupeesToPaise } from './rupees.ts'

const read = (text: string): bigint | string => {
  const result = rupeesToPaise(text)
  return result.kind === 'amount' ? result.amount : result.rule
}

test('reads an amount the way people write it', () => {
  for (const text of [
    '100000',
    '1,00,000',
    '100,000',
    '1,00,000.00',
    '100000.0',
    ' 1,00,000 ',
    '₹1,00,000',
    '₹ 100000',
    'Rs 1,00,000',
    'Rs. 1,00,000',
    'rs.100000',
    'RS.1,00,000.00',
    'INR 100000',
    '1,00,000/-',
    '₹1,00,000 /-',
    '0100000',
  ])
    assert.equal(read(text), 10_000_000n, text)
  assert.equal(read('500'), 50_000n)
  assert.equal(read('12,34,56,789'), 12_345_678_900n)
  assert.equal(read('12,345,678'), 1_234_567_800n)
  assert.equal(read('9999999999999'), 999_999_999_999_900n)
  assert.equal(read('INR   500   /-'), 50_000n)
  assert.equal(read('Rs.50'), 5_000n)
  assert.equal(read('0'), 0n)
})

test('refuses, by its rule, a text with two readings or none', () => {
  const refused: Record<string, string[]> = {
    required: ['', '  '],
    positive: ['-500', '₹-500', '-₹500', '(500)', '−500'],
    'before-point': ['.50', '₹.5', 'Rs .50', 'Rs..50', '.500', '.'],
    'whole-rupees': ['500.50', '1,00,000.01', '₹0.5'],
    scientific: ['1E+05', '1.2e5', '5e3', '12.25E-10', '₹1e5'],
    grouping: [
      ...['1,0000', '10,00', '1,00,0000', '100,00,000', '1,,000', ',500', '500,', '1,0,0,000'],
      ...['1000,000', '1,000,00', '1,000,0000', '123,45,678'],
    ],
    'amount-format': [
      'abc',
      '1.000,00',
      '1.000',
      '500.',
      '1 000',
      '500 USD',
      '$500',
      '1.2.3',
      '₹',
      '500//-',
      '1_000',
      '100₹',
      '500/-00',
      '500-',
      '50(0)',
      'x500',
      '500x',
      'x1e5',
      '1e5x',
      '1.e5',
      '1e5.5',
      '500.x5',
      '500.5x',
      '1.2.3.4',
    ],
    'ascii-digits': ['५००', '₹१,००,०००', '௫௦௦', '５００', '5०0'],
    size: ['12345678901234'],
  }
  for (const [rule, texts] of Object.entries(refused))
    for (const text of texts) assert.equal(read(text), rule, text)
})

test('every rule says what to write instead', () => {
  const messages: Record<string, RegExp> = {
    '': /^must be given$/,
    '-500': /^must be more than zero$/,
    '500.50': /^must be whole rupees: /,
    '1E+05': /format the column as a number without decimals and type it again$/,
    '10,00': /1,00,000 or 100000$/,
    '.50': /^must have rupees before the point: 50 or 0\.50$/,
    abc: /^must be rupees, such as 50000, 50,000 or ₹50,000\.00$/,
    '५००': /^write the amount with the digits 0 to 9$/,
    '12345678901234': /^must have at most 13 digits$/,
  }
  for (const [text, message] of Object.entries(messages)) {
    const result = rupeesToPaise(text)
    assert.match(result.kind === 'unreadable' ? result.message : '', message, text)
  }
})

test('every whole number of rupees survives formatting and reading', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 9_999_999_999_999n }), (rupees) => {
      assert.equal(read(formatRupees(paise(rupees * 100n))), rupees * 100n)
      assert.equal(read(rupees.toLocaleString('en-US')), rupees * 100n)
      assert.equal(read(rupees.toLocaleString('en-IN')), rupees * 100n)
    }),
  )
})

test('never reads a text as a fraction of a rupee or a negative amount, and never throws', () => {
  const characters = fc.string({ unit: fc.constantFrom(...'0123456789,.₹-+eERs /()५ '), maxLength: 16 })
  fc.assert(
    fc.property(characters, (text) => {
      const amount = read(text)
      assert.ok(typeof amount === 'string' || (amount >= 0n && amount % 100n === 0n))
    }),
    { numRuns: 5_000 },
  )
})
