import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { brokenVersions, oneWaits, payoutsOf } from '../../../test/ledger.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import type { PayoutCommand } from '../../domain/commands/command.ts'
import type { Fault } from '../../domain/fault.ts'
import { paise } from '../../domain/money.ts'
import { fence } from '../../operators/recovery/recovery.ts'
import { releasePayouts } from '../../operators/release-payouts.ts'
import { sql, type Transaction } from '../../platform/postgres/postgres.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import { tellPayout } from '../../queries/payout-story.ts'
import { payoutsNamed } from '../../queries/sql/payouts/list.ts'
import { listText } from '../../views/list-text.ts'
import { storyText } from '../../views/story-text.ts'
import { holding } from './holds.fixture.ts'
import type { MerchantTerms, PayoutRequest } from './parse-command.ts'
import { declareBatches } from './sql/batches.ts'
import { storeCommands } from './store-commands.ts'
import { takeTurn } from './take-turn.ts'

const dues = sql<object, { payoutId: string; dueAt: number; deadline: number }>`
  select payout_id, due_at, deadline from payouts order by payout_id`
const waiting = sql<object>`
  select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`

const day = 86_400_000
const asha = (payoutId: string, fields: Partial<PayoutCommand> = {}) => command(payoutId, fields)

describe('a payout of the same amount to the same beneficiary', () => {
  test('in another batch is held until a person releases it, and names the earlier one', async (t) => {
    const { ledger, take, reasons, holds } = await holding(t)
    await take(asha('salary-1'))
    await take(asha('again-1', { batchId: 'november-2' }))
    assert.deepEqual(await reasons(), { 'again-1': 'duplicate', 'salary-1': 'queued' })
    const [held, ...others] = await holds()
    assert.deepEqual(others, [])
    assert.deepEqual(
      [held?.payoutId, held?.earlierPayoutId, held?.earlierBatchId],
      ['again-1', 'salary-1', 'november'],
    )
    const [payout] = await payoutsOf(ledger)
    assert.deepEqual([payout?.ready, payout?.version], [false, 1])
    const [due] = await ledger.db.run(dues, {})
    assert.equal(due?.dueAt, due?.deadline)
    assert.deepEqual(await brokenVersions(ledger), [])
  })

  test('is held under another name, too, but not at another bank, or of another amount', async (t) => {
    const { take, reasons } = await holding(t)
    await take(asha('salary-1'))
    await take(
      asha('renamed', { batchId: 'b', accountName: 'ASHA RAO', remark: 'Salary' }),
      asha('elsewhere', { batchId: 'b', ifsc: 'ICIC0001234' }),
      asha('more', { batchId: 'b', amount: paise(5_000_100n) }),
    )
    assert.deepEqual(await reasons(), {
      elsewhere: 'queued',
      more: 'queued',
      renamed: 'duplicate',
      'salary-1': 'queued',
    })
  })

  test('in the same batch is another payment', async (t) => {
    const { take, reasons } = await holding(t)
    await take(asha('salary-1'), asha('bonus-1'))
    await take(asha('bonus-2'))
    assert.deepEqual(await reasons(), { 'bonus-1': 'queued', 'bonus-2': 'queued', 'salary-1': 'queued' })
  })

  test('in the same batch from another file is held, whenever that file comes: its reference was changed', async (t) => {
    const { take, reasons, holds } = await holding(t, { payPeriod: 'day' })
    const [first, resaved] = ['ab'.repeat(32), 'cd'.repeat(32)]
    await take(asha('000017', { fileHash: first }), asha('bonus', { fileHash: first, rowNumber: 2 }))
    await take(asha('000018', { fileHash: first, rowNumber: 3, amount: paise(100n) }))
    const later = Date.now() + 40 * day
    await take(
      asha('17', { fileHash: resaved, notBefore: later, deadline: later + day }),
      asha('18', { fileHash: resaved, rowNumber: 3, amount: paise(200n) }),
    )
    await take(asha('by-hand'))
    assert.deepEqual(await reasons(), {
      '000017': 'queued',
      '000018': 'queued',
      '17': 'duplicate',
      '18': 'queued',
      bonus: 'queued',
      'by-hand': 'duplicate',
    })
    assert.equal((await holds())[0]?.earlierBatchId, 'november')
  })

  test('is held if its account lost its leading zeros, or changed between upper and lower case', async (t) => {
    const { take, reasons } = await holding(t)
    const vpa = { ifsc: null, vpa: 'Asha.Rao@OkAxis' }
    const [first, resaved] = ['ab'.repeat(32), 'cd'.repeat(32)]
    await take(
      asha('000017', { fileHash: first, accountNo: '00000030123456789' }),
      asha('000018', { fileHash: first, rowNumber: 2, accountNo: '00501A0012345' }),
      asha('000019', { fileHash: first, rowNumber: 3, ...vpa }),
    )
    await take(
      asha('17', { fileHash: resaved, accountNo: '30123456789' }),
      asha('18', { fileHash: resaved, rowNumber: 2, accountNo: '501a0012345' }),
      asha('19', { fileHash: resaved, rowNumber: 3, ...vpa, vpa: 'asha.rao@okaxis' }),
    )
    assert.deepEqual(await reasons(), {
      '000017': 'queued',
      '000018': 'queued',
      '000019': 'queued',
      '17': 'duplicate',
      '18': 'duplicate',
      '19': 'duplicate',
    })
  })

  test('to the same account by the IFSC of another branch is held, from another batch and from another file of the batch', async (t) => {
    const { take, reasons } = await holding(t)
    const [first, resaved] = ['ab'.repeat(32), 'cd'.repeat(32)]
    await take(asha('salary-1', { fileHash: first, ifsc: 'HDFC0001234' }))
    await take(
      asha('1', { fileHash: resaved, ifsc: 'HDFC0000001' }),
      asha('again', { fileHash: resaved, ifsc: 'HDFC0000002', batchId: 'november-2', beneficiaryId: 'E-17' }),
    )
    assert.deepEqual(await reasons(), { '1': 'duplicate', again: 'duplicate', 'salary-1': 'queued' })
  })

  test('to the same VPA is held whatever account number it names besides, whether they come together or not', async (t) => {
    const { take, reasons } = await holding(t)
    const to = { ifsc: null, vpa: 'asha.rao@okaxis' }
    await take(asha('salary-1', { ...to, accountNo: '123456789012345678' }))
    await take(
      asha('rounded', { ...to, accountNo: '123456789012345000', batchId: 'b' }),
      asha('phone', { ...to, accountNo: '9876543210', batchId: 'c' }),
      asha('other', { ...to, vpa: 'ravi@okaxis', accountNo: '123456789012345678', batchId: 'b' }),
      asha('at-bank', { accountNo: '123456789012345678', batchId: 'b' }),
    )
    assert.deepEqual(await reasons(), {
      'at-bank': 'queued',
      other: 'queued',
      phone: 'duplicate',
      rounded: 'duplicate',
      'salary-1': 'queued',
    })
  })

  test('that is the same row of the same file under another reference is held', async (t) => {
    const { take, reasons } = await holding(t)
    const fileHash = 'ab'.repeat(32)
    await take(asha('E17|2026-11', { fileHash }), asha('E18|2026-11', { fileHash, rowNumber: 2 }))
    await take(asha('E17', { fileHash }))
    await take(asha('E-18', { fileHash, rowNumber: 2 }))
    assert.deepEqual(await reasons(), {
      E17: 'duplicate',
      'E17|2026-11': 'queued',
      'E18|2026-11': 'queued',
      'E-18': 'duplicate',
    })
  })

  test('that comes together with one of the same batch is held if it is from another file or the same row', async (t) => {
    const { take, reasons } = await holding(t)
    const [one, two] = ['ab'.repeat(32), 'cd'.repeat(32)]
    await take(
      asha('first', { fileHash: one }),
      asha('twin', { fileHash: one, rowNumber: 2 }),
      asha('other-file', { fileHash: two, rowNumber: 3 }),
      asha('same-row', { fileHash: one, rowNumber: 2 }),
    )
    assert.deepEqual(await reasons(), {
      first: 'queued',
      'other-file': 'duplicate',
      'same-row': 'duplicate',
      twin: 'queued',
    })
  })

  test('that comes together with the same row is held, though that one is held for another payment', async (t) => {
    const { take, reasons } = await holding(t)
    const row = { batchId: 'b', fileHash: 'ab'.repeat(32) }
    await take(
      asha('first', { batchId: 'a' }),
      asha('held', row),
      asha('same-row', { ...row, notBefore: Date.now() + 60 * day }),
    )
    assert.deepEqual(await reasons(), { first: 'queued', held: 'duplicate', 'same-row': 'duplicate' })
  })

  test('in the same batch from another file is paid after one that failed', async (t) => {
    const { take, reasons, move } = await holding(t)
    await take(asha('failed', { fileHash: 'ab'.repeat(32) }))
    await move('failed', 'submitting', 'failed')
    await take(asha('failed-2', { fileHash: 'cd'.repeat(32) }))
    assert.equal((await reasons())['failed-2'], 'queued')
  })

  test('in the same batch is held if more of the same came before than intake looks at', async (t) => {
    const { take, reasons } = await holding(t)
    const twin = (n: number) => asha(`twin-${n}`, { fileHash: 'ab'.repeat(32), rowNumber: n })
    await take(...Array.from({ length: 100 }, (_, n) => twin(n)))
    await take(twin(100), asha('again', { fileHash: 'ab'.repeat(32), rowNumber: 0 }))
    const { again, 'twin-99': within, 'twin-100': beyond } = await reasons()
    assert.deepEqual([again, within, beyond], ['duplicate', 'queued', 'duplicate'])
  })

  test('without a batch is held after one in a batch that has its payoutId as name', async (t) => {
    const { take, reasons } = await holding(t)
    await take(asha('first', { batchId: 'salary-1' }))
    await take(asha('salary-1', { batchId: null }))
    assert.deepEqual(await reasons(), { first: 'queued', 'salary-1': 'duplicate' })
  })

  test('without a batch is held, and so is a later one without a batch', async (t) => {
    const { take, reasons } = await holding(t)
    await take(asha('salary-1'))
    await take(asha('a-single', { batchId: null, amount: paise(100n) }))
    await take(asha('z-single', { batchId: null, amount: paise(100n) }), asha('single', { batchId: null }))
    assert.deepEqual(await reasons(), {
      'a-single': 'queued',
      'salary-1': 'queued',
      single: 'duplicate',
      'z-single': 'duplicate',
    })
  })

  test('that comes together with it is held: the first one goes, however the batches sort', async (t) => {
    const { take, reasons } = await holding(t)
    await take(asha('p-1', { batchId: 'm' }), asha('p-2', { batchId: 'a' }), asha('p-3', { batchId: 'z' }))
    assert.deepEqual(await reasons(), { 'p-1': 'queued', 'p-2': 'duplicate', 'p-3': 'duplicate' })
  })

  test('in a batch named like an earlier payout without a batch is held', async (t) => {
    const { take, reasons, holds } = await holding(t)
    await take(asha('salary-1', { batchId: null }))
    await take(asha('again', { batchId: 'salary-1' }))
    assert.equal((await reasons()).again, 'duplicate')
    const [held] = await holds()
    assert.deepEqual([held?.earlierPayoutId, held?.earlierBatchId], ['salary-1', null])
  })

  test('is held after one that broke a rule while its merchant was fenced, and was paid', async (t) => {
    const { ledger, config, take, move, reasons } = await holding(t)
    await fence(ledger.db, [{ merchantId: 'acme', feeEstimate: 0n }], { by: 'asha', reason: 'disk lost' })
    const keys = { sealing: config.sealing, fingerprint: config.fingerprintKey }
    const faults = [
      { field: 'amount', rule: 'maximum', found: '', message: 'too much' },
    ] as unknown as Fault[]
    const terms = {
      payPeriod: 'month',
      holdDuplicates: true,
      holdChangedBeneficiaries: true,
      deadlineMs: day,
    }
    await ledger.db.transaction('test', (tx) =>
      storeCommands(tx, ledger, keys, [
        { command: asha('odd'), terms: terms as MerchantTerms, faults, traceparent: null },
      ]),
    )
    assert.equal((await reasons()).odd, 'faults')
    await move('odd', 'review', 'paid')
    await take(asha('again', { batchId: 'b' }))
    assert.equal((await reasons()).again, 'duplicate')
  })

  test('is held if it comes together with one that broke a rule while its merchant was fenced', async (t) => {
    const { ledger, config, reasons } = await holding(t)
    await fence(ledger.db, [{ merchantId: 'acme', feeEstimate: 0n }], { by: 'asha', reason: 'disk lost' })
    const keys = { sealing: config.sealing, fingerprint: config.fingerprintKey }
    const terms = { ...(config.merchants.get('acme') as MerchantTerms), holdDuplicates: true }
    const asked = (payoutId: string, faults: Fault[] = []) => ({
      ...{ command: asha(payoutId, { batchId: payoutId }), terms, faults, traceparent: null },
    })
    const tooMuch: Fault = { field: 'amount', rule: 'maximum', found: '', message: 'too much' }
    await ledger.db.transaction('test', (tx) =>
      storeCommands(tx, ledger, keys, [asked('odd', [tooMuch]), asked('again')]),
    )
    assert.deepEqual(await reasons(), { again: 'duplicate', odd: 'faults' })
  })

  test('is paid after one that failed or was cancelled', async (t) => {
    const { take, reasons, move } = await holding(t)
    await take(asha('failed'), asha('cancelled'))
    await move('failed', 'submitting', 'failed')
    await move('cancelled', 'cancelled')
    await take(asha('again', { batchId: 'second try' }))
    assert.equal((await reasons()).again, 'queued')
  })

  test('is paid after one that was refused', async (t) => {
    const { ledger, config, take, reasons } = await holding(t)
    const keys = { sealing: config.sealing, fingerprint: config.fingerprintKey }
    const [terms] = [...config.merchants.values()]
    const faults = [{ field: 'remark', rule: 'length', message: 'too long', found: '' }]
    await ledger.db.transaction('test', (tx) =>
      storeCommands(tx, ledger, keys, [
        { command: asha('refused'), terms: terms as MerchantTerms, faults, traceparent: null },
      ]),
    )
    await take(asha('again', { batchId: 'corrected' }))
    assert.deepEqual(await reasons(), { again: 'queued', refused: 'faults' })
  })

  test('is held if more failed before than intake looks at', async (t) => {
    const { ledger, take, reasons } = await holding(t)
    await take(...Array.from({ length: 100 }, (_, i) => asha(`gone-${i}`, { batchId: `batch-${i}` })))
    await ledger.db.run(
      sql<object>`update payouts set state = 'cancelled', ready = false, reason = 'cancelled'`,
      {},
    )
    await take(asha('again-1', { batchId: 'november-2' }))
    assert.equal((await reasons())['again-1'], 'duplicate')
  })

  test('in another pay period is paid: the period is that in which a payout may be sent', async (t) => {
    const { take, reasons } = await holding(t, { payPeriod: 'day' })
    const later = Date.now() + 40 * day
    await take(asha('today'))
    await take(asha('scheduled', { batchId: 'b', notBefore: later, deadline: later + day }))
    await take(asha('twice', { batchId: 'c', notBefore: later, deadline: later + day }))
    assert.deepEqual(await reasons(), { scheduled: 'schedule', today: 'queued', twice: 'duplicate' })
  })

  test('is paid if the merchant does not want duplicates held', async (t) => {
    const { take, reasons, holds } = await holding(t, { holdDuplicates: false })
    await take(asha('refund-1', { batchId: null }))
    await take(asha('refund-2', { batchId: null }))
    assert.deepEqual(await reasons(), { 'refund-1': 'queued', 'refund-2': 'queued' })
    assert.deepEqual(await holds(), [])
  })

  test('of another merchant does not count', async (t) => {
    const { take, reasons } = await holding(t)
    await take(asha('p-1'))
    await take(asha('p-2', { merchantId: 'other', batchId: 'b' }))
    assert.equal((await reasons())['p-2'], 'queued')
  })

  test('that comes at the same moment from another partition waits for its turn, and is held', async (t) => {
    const { ledger, config, take, reasons } = await holding(t)
    let second: Promise<void> | undefined
    await ledger.db.transaction('test', async (tx) => {
      const keys = { sealing: config.sealing, fingerprint: config.fingerprintKey }
      const [terms] = [...config.merchants.values()]
      const arrival = { command: asha('p-1'), terms: terms as MerchantTerms, faults: [], traceparent: null }
      await takeTurn(tx, ['acme'])
      await storeCommands(tx, ledger, keys, [arrival])
      second = take(asha('p-2', { batchId: 'b' }))
      await eventually('the second waits', () => oneWaits(ledger))
    })
    await second
    assert.deepEqual(await reasons(), { 'p-1': 'queued', 'p-2': 'duplicate' })
  })
})

describe('a file', () => {
  const row = (payoutId: string, batchId: string, merchantId = 'acme', fileHash = 'ab'.repeat(32)) => ({
    ...command(payoutId, {
      batchId,
      fileHash,
      accountNo: `5010${payoutId.length}00000`,
      amount: paise(100n),
    }),
    merchantId,
  })

  test('that came before as another batch has its rows held, however many come of the first', async (t) => {
    const { ledger, take, reasons, holds } = await holding(t)
    await take(row('first', 'november'))
    await take(row('second-', 'dezember'), row('late-----', 'november'))
    await take(row('other------', 'dezember', 'acme', 'cd'.repeat(32)))
    assert.deepEqual(await reasons(), {
      first: 'queued',
      'late-----': 'queued',
      'other------': 'queued',
      'second-': 'duplicate-file',
    })
    const accepted = sql<
      object,
      { at: number }
    >`select accepted_at as at from payouts where payout_id = 'first'`
    const [first] = await ledger.db.run(accepted, {})
    assert.deepEqual(
      (await holds()).map((hold) => [hold.earlierPayoutId, hold.earlierBatchId, hold.since]),
      [[null, 'november', first?.at]],
    )
  })

  test('whose rows are all known, or contradict them, is that of its batch, too', async (t) => {
    const { take, reasons } = await holding(t)
    const saved = 'cd'.repeat(32)
    await take(row('first', 'november'), row('second-', 'november'))
    await take(row('first', 'november', 'acme', saved), {
      ...row('second-', 'november', 'acme', saved),
      accountNo: '501099999999',
    })
    await take(row('slip', 'november', 'dale', saved), row('again-----', 'dezember', 'acme', saved))
    assert.deepEqual(await reasons(), {
      ...{ first: 'queued', 'second-': 'queued' },
      ...{ slip: 'duplicate-file', 'again-----': 'duplicate-file' },
    })
  })

  test('is that of its first payout, whatever was declared and when', async (t) => {
    const { ledger, take, reasons } = await holding(t)
    const declared = (batchId: string, declaredAt: number) => ({
      ...{ merchantId: 'acme', batchId, rows: 1, amount: paise(100n), refused: 0 },
      ...{ fileHash: 'ab'.repeat(32), declaredAt },
    })
    await ledger.db.run(declareBatches, { batches: [declared('dezember', 1_000)] })
    await take(row('first', 'november'))
    await ledger.db.run(declareBatches, { batches: [declared('november', 2_000)] })
    await take(row('again-', 'dezember'))
    assert.deepEqual(await reasons(), { 'again-': 'duplicate-file', first: 'queued' })
  })

  test('that comes together with itself under another batch is that of its first row', async (t) => {
    const { take, reasons } = await holding(t)
    await take(row('right', 'november', 'bolt'), row('slip', 'november'), row('late--', 'november', 'bolt'))
    assert.deepEqual(await reasons(), { 'late--': 'queued', right: 'queued', slip: 'duplicate-file' })
  })

  test('that comes at the same moment for another merchant waits for the first, and is held', async (t) => {
    const { ledger, config, reasons } = await holding(t)
    const keys = { sealing: config.sealing, fingerprint: config.fingerprintKey }
    const terms = config.merchants.get('acme') as MerchantTerms
    // Without a turn, which would bound the wait.
    const store = (tx: Transaction, command: PayoutCommand) =>
      storeCommands(tx, ledger, keys, [{ command, terms, faults: [], traceparent: null }])
    let second: Promise<unknown> | undefined
    await ledger.db.transaction('test', async (tx) => {
      await store(tx, row('slip', 'november', 'bolt'))
      second = ledger.db.transaction('test', (other) => store(other, row('right', 'november')))
      await eventually('the second waits', async () => (await ledger.db.run(waiting, {})).length > 0)
    })
    await second
    assert.deepEqual(await reasons(), { right: 'duplicate-file', slip: 'queued' })
  })

  test("of which no row was accepted is nobody's yet, but one of a merchant who holds no duplicates is taken", async (t) => {
    const { ledger, config, take, reasons } = await holding(t)
    const keys = { sealing: config.sealing, fingerprint: config.fingerprintKey }
    const terms = { ...(config.merchants.get('acme') as MerchantTerms), holdDuplicates: false }
    const arrive = (arrival: Pick<PayoutRequest, 'command' | 'faults'>) =>
      ledger.db.transaction('test', (tx) =>
        storeCommands(tx, ledger, keys, [{ ...arrival, terms, traceparent: null }]),
      )
    await arrive({
      command: row('bad', 'november', 'bolt'),
      faults: [{ field: 'amount', rule: 'maximum', found: '', message: 'too much' }],
    })
    await arrive({ command: row('right', 'november', 'dale'), faults: [] })
    await take(row('again-', 'november'))
    assert.deepEqual(await reasons(), { bad: 'faults', right: 'queued', 'again-': 'duplicate-file' })
  })

  test('that came for another merchant before is held, even as a batch of the same name, until a person releases it', async (t) => {
    const { ledger, config, take, reasons, holds } = await holding(t)
    await take(row('slip', 'november', 'bolt'))
    await take(row('right', 'november'))
    await take({ ...row('late', 'november', 'bolt'), rowNumber: 2 })
    assert.deepEqual(await reasons(), { late: 'queued', right: 'duplicate-file', slip: 'queued' })
    assert.deepEqual(
      (await holds()).map(({ earlierBatchId, earlierMerchantId }) => [earlierBatchId, earlierMerchantId]),
      [['november', 'bolt']],
    )
    const asked = { merchantId: 'acme', payoutIds: ['right'] }
    assert.match(
      listText(await ledger.db.run(payoutsNamed, asked)),
      /duplicate-file: november of merchant bolt\)/,
    )
    const told = await tellPayout(ledger.db, { merchantId: 'acme', payoutId: 'right' }, config.sealing)
    assert.match(
      storyText(told),
      /held because\n {2}the same file came as batch november of merchant bolt on 20/,
    )
    const release = { ...asked, by: 'asha', reason: 'it was cancelled for bolt', payPeriod: 'month' } as const
    await releasePayouts({ ...release, known: null, shown: null }, ledger)
    assert.equal((await reasons()).right, 'queued')
  })

  test('whose rows are also repeated payments gives both reasons, the payment first', async (t) => {
    const { take, reasons, holds } = await holding(t)
    await take(row('first', 'november'))
    await take(row('again', 'dezember'))
    assert.equal((await reasons()).again, 'duplicate')
    assert.deepEqual(
      (await holds()).map(({ reason }) => reason),
      ['duplicate', 'duplicate-file'],
    )
  })
})

describe('a beneficiary with other bank details', () => {
  const emp = (payoutId: string, accountNo: string, amount: bigint) =>
    command(payoutId, { batchId: payoutId, beneficiaryId: 'E-17', accountNo, amount: paise(amount) })

  test('than those last paid to is held, and the hold shows since when the old ones were paid to', async (t) => {
    const { ledger, take, reasons, holds, move } = await holding(t)
    await take(emp('september', '50100111111111', 100n))
    await move('september', 'submitting', 'paid')
    await take(emp('october', '50100111111111', 200n))
    await move('october', 'submitting', 'paid')
    await take(emp('november', '50100222222222', 300n))
    assert.equal((await reasons()).november, 'beneficiary-changed')
    const [held, ...others] = await holds()
    assert.deepEqual(others, [])
    const since = sql<
      object,
      { at: number }
    >`select accepted_at as at from payouts where payout_id = 'september'`
    const [first] = await ledger.db.run(since, {})
    assert.deepEqual(
      [held?.earlierPayoutId, held?.earlierBatchId, held?.since],
      ['october', 'october', first?.at],
    )
  })

  test('is also held if more payments were requested than intake looks at, and none was paid', async (t) => {
    const { take, reasons } = await holding(t)
    const many = Array.from({ length: 100 }, (_, i) => emp(`row-${i}`, '50100111111111', 100n))
    await take(...many)
    await take(emp('same', '50100111111111', 300n))
    await take(emp('other', '50100222222222', 400n))
    const { same, other } = await reasons()
    assert.deepEqual([same, other], ['queued', 'beneficiary-changed'])
  })

  for (const states of [
    [],
    ['submitting'],
    ['submitting', 'processing'],
    ['submitting', 'unknown'],
    ['review'],
  ] as const)
    test(`than one that may still be paid (${states.at(-1) ?? 'queued'}) is held, and names that one`, async (t) => {
      const { take, reasons, holds, move } = await holding(t)
      await take(emp('october', '50100111111111', 100n))
      await move('october', 'submitting', 'paid')
      await take(emp('november', '50100111111111', 200n))
      await move('november', ...states)
      await take(emp('again', '50100222222222', 200n))
      assert.equal((await reasons()).again, 'beneficiary-changed')
      assert.equal((await holds())[0]?.earlierPayoutId, 'november')
    })

  test('than one that came together with it from another batch is held', async (t) => {
    const { take, reasons, holds } = await holding(t)
    await take(emp('first', '50100111111111', 100n), emp('again', '50100222222222', 100n))
    assert.deepEqual(await reasons(), { again: 'beneficiary-changed', first: 'queued' })
    assert.deepEqual(
      (await holds()).map(({ earlierPayoutId, earlierBatchId }) => [earlierPayoutId, earlierBatchId]),
      [['first', 'first']],
    )
  })

  test('is held under an id from which a spreadsheet has dropped zeros', async (t) => {
    const { take, reasons, move } = await holding(t)
    await take({ ...emp('october', '50100111111111', 100n), beneficiaryId: '000017' })
    await move('october', 'submitting', 'paid')
    await take({ ...emp('november', '50100222222222', 100n), beneficiaryId: '17' })
    assert.equal((await reasons()).november, 'beneficiary-changed')
  })

  test('in two rows of one file is a split salary, but not in two files of one batch', async (t) => {
    const { take, reasons } = await holding(t)
    const part = (payoutId: string, accountNo: string, fileHash: string) => ({
      ...emp(payoutId, accountNo, 100n),
      ...{ batchId: 'november', fileHash },
    })
    await take(part('one', '50100111111111', 'ab'.repeat(32)), part('two', '50100222222222', 'ab'.repeat(32)))
    await take(part('three', '50100333333333', 'ab'.repeat(32)))
    await take(part('corrected', '50100444444444', 'cd'.repeat(32)))
    assert.deepEqual(await reasons(), {
      corrected: 'beneficiary-changed',
      one: 'queued',
      three: 'queued',
      two: 'queued',
    })
  })

  test('is compared with the last payment that was paid, and not with those that can no longer be', async (t) => {
    const { take, reasons, move } = await holding(t)
    await take(emp('first', '50100111111111', 100n))
    await move('first', 'cancelled')
    await take(emp('second', '50100222222222', 200n))
    await move('second', 'submitting', 'paid')
    await take(emp('third', '50100222222222', 300n))
    await take(emp('fourth', '50100111111111', 400n))
    assert.equal((await reasons()).fourth, 'beneficiary-changed')
    await move('fourth', 'cancelled')
    await take(emp('fifth', '50100222222222', 500n))
    assert.deepEqual(await reasons(), {
      fifth: 'queued',
      first: 'cancelled',
      fourth: 'cancelled',
      second: 'paid',
      third: 'queued',
    })
  })

  test('is not held without an id, or if the merchant does not want it', async (t) => {
    const { take, reasons, move } = await holding(t, { holdChangedBeneficiaries: false })
    await take(emp('first', '50100111111111', 100n))
    await move('first', 'submitting', 'paid')
    await take(emp('second', '50100222222222', 200n), {
      ...emp('third', '50100333333333', 300n),
      beneficiaryId: null,
    })
    assert.deepEqual(await reasons(), { first: 'paid', second: 'queued', third: 'queued' })
  })
})

test('messages about a held payout carry the reason, and no repeat of the command changes it', async (t) => {
  const { ledger, codec, take, move, reasons } = await holding(t)
  await take(asha('p-1'))
  await take(asha('p-2', { batchId: 'b' }))
  const rows = await ledger.db.run(
    sql<object, { value: Buffer }>`select value from ${outboxMessages} where key = 'acme:p-2'`,
    {},
  )
  const [event, ...others] = await Promise.all(rows.map(({ value }) => codec.decode(value)))
  assert.equal(others.length, 0)
  assert.ok(event?.kind === 'decoded')
  const { toState, reason } = event.value as { toState: string; reason: string }
  assert.deepEqual([toState, reason], ['HELD', 'duplicate'])
  await move('p-2', 'queued')
  await take(asha('p-2', { batchId: 'b' }))
  assert.equal((await reasons())['p-2'], 'queued')
})
