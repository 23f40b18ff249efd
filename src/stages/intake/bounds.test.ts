import assert from 'node:assert/strict'
import { test } from 'node:test'
import { command } from '../../domain/commands/command.fixture.ts'
import { validate } from '../../domain/commands/validate.ts'
import { MOST } from '../../domain/limits.ts'
import { silentLogger } from '../../platform/log.ts'
import { parseCommand, readRecord } from './parse-command.ts'

const NO_LIMITS = { minAmount: null, maxAmount: null }
const HUGE = 60_000
const TEXTS = [
  ...['currency', 'beneficiaryId', 'accountName', 'accountNo', 'bankCode', 'ifsc', 'vpa'],
  ...['phoneNumber', 'payerEmail', 'remark', 'fileHash', 'batchId'],
]
const terms = new Map([
  [
    'acme',
    {
      limits: NO_LIMITS,
      deadlineMs: 1,
      payPeriod: 'month',
      holdDuplicates: false,
      holdChangedBeneficiaries: false,
    } as const,
  ],
])
const parsed = (name: string, value: object) =>
  parseCommand(
    { kind: 'decoded', name: `in.payoutd.${name}`, value: { merchantId: 'acme', ...value } },
    terms,
  )

for (const field of TEXTS) {
  test(`a huge ${field} is refused at once, and the faults show little of it`, () => {
    for (const part of ['a', 'a.', '.', ' ', '@', 'a@', '🙂', '1', '\ud800']) {
      const prefix = part === '.' || part === 'a.' ? 'ab@' : ''
      const text = `${prefix}${part.repeat(HUGE / part.length)} `
      const began = performance.now()
      const faults = validate(command('p1', { [field]: text }), NO_LIMITS)
      assert.ok(performance.now() - began < 200, `${field} of ${JSON.stringify(part)} took too long`)
      assert.ok(faults.length > 0, `${field} of ${JSON.stringify(part)} is taken`)
      assert.ok(JSON.stringify(faults).length < 2_000)
    }
  })
}

test('intake keeps no more of a huge text than shows that it is too long', () => {
  const huge = Object.fromEntries(TEXTS.map((field) => [field, '🙂'.repeat(HUGE)]))
  const metadata = Object.fromEntries(
    Array.from({ length: 900 }, (_, i) => [`${i}`.repeat(100), 'x'.repeat(100)]),
  )
  const read = parsed('PayoutRequested', { ...command('p1'), amount: 100n, ...huge, metadata })
  assert.ok(read.kind === 'payout' && read.faults.length > TEXTS.length - 3)
  assert.ok(JSON.stringify({ ...read.command, amount: 0 }).length < 20_000)
  assert.ok(Object.values(read.command).every((text) => typeof text !== 'string' || text.isWellFormed()))
})

test('a record larger than any command is dead before intake decodes it', async () => {
  const decode = () => assert.fail('it was decoded')
  const record = { offset: 0n, key: null, value: Buffer.from('v'), headers: {}, timestamp: 0 }
  const large = Buffer.alloc(256 * 1024)
  for (const part of [
    { value: large },
    { key: large },
    { headers: { a: large } },
    { headers: { a: ['', large] } },
  ]) {
    const origin = { topic: 'commands', partition: 0, logId: null }
    const read = await readRecord({ ...record, key: Buffer.from('k'), ...part }, origin, {
      terms,
      decode,
      log: silentLogger,
    })
    assert.deepEqual(read, { kind: 'dead', reason: 'too-large' })
  }
})

test('the largest valid command is far smaller than a record that is too large', () => {
  const metadata = Object.fromEntries(
    Array.from({ length: MOST.metadataFields }, (_, i) => [
      `${i}`.padStart(MOST.metadataName, '€'),
      '€'.repeat(MOST.metadataValue),
    ]),
  )
  const largest = command('p1', { metadata, remark: '€'.repeat(256), payerEmail: `ab@c.${'€'.repeat(250)}` })
  assert.deepEqual(validate(largest, NO_LIMITS), [])
  assert.ok(Buffer.byteLength(JSON.stringify({ ...largest, amount: 0 })) < 200 * 1024)
})

test('metadata has a bound in number and size', () => {
  const many = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`m${i}`, '']))
  for (const metadata of [many, { m: 'x'.repeat(1_025) }, { ['m'.repeat(65)]: '' }]) {
    assert.deepEqual(
      validate(command('p1', { metadata }), NO_LIMITS).map(({ field }) => field),
      ['metadata'],
    )
  }
})

test('a cancellation of an impossible payoutId is dead, and a long reason is cut', () => {
  const cancel = { payoutId: 'p1', reason: 'r'.repeat(HUGE), requestedBy: 'b'.repeat(HUGE) }
  const read = parsed('PayoutCancelRequested', cancel)
  assert.ok(read.kind === 'cancel' && read.why.length < 500)
  assert.deepEqual(parsed('PayoutCancelRequested', { ...cancel, payoutId: 'x'.repeat(5_000) }), {
    kind: 'dead',
    reason: 'bad-payout-id',
  })
})

test('intake masks an account number in the reason of a cancellation', () => {
  const cancel = { payoutId: 'p1', reason: 'wrong account 50100123456789', requestedBy: 'hr' }
  const read = parsed('PayoutCancelRequested', cancel)
  assert.equal(read.kind === 'cancel' && read.why, 'hr: wrong account ••••6789')
})

test('a declaration that no file can have is dead', () => {
  const good = {
    batchId: 'b',
    rows: 1,
    amount: 100n,
    refused: 0,
    fileHash: 'ab',
    declaredAt: Date.UTC(2026, 10),
  }
  assert.equal(parsed('PayoutBatchDeclared', good).kind, 'batch')
  for (const wrong of [
    { rows: -1 },
    { refused: -1 },
    { amount: -1n },
    { fileHash: 'x'.repeat(65) },
    { declaredAt: 1e15 },
  ])
    assert.deepEqual(parsed('PayoutBatchDeclared', { ...good, ...wrong }), {
      kind: 'dead',
      reason: 'bad-declaration',
    })
})
