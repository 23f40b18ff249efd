import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { brokenVersions, payoutsOf } from '../../../test/ledger.ts'
import { ABSENT, type LostLedger, lostLedger, WHO } from '../../../test/lost-ledger.ts'
import { releaseText } from '../../views/release-text.ts'
import { releasePayouts } from '../release-payouts.ts'

const now = async ({ ledger }: LostLedger) =>
  (await payoutsOf(ledger)).map(({ payoutId, state, reason }) =>
    [payoutId, state, reason ?? ''].join(' ').trim(),
  )
const wave = async (lost: LostLedger) => (await lost.wave()).map(({ payoutId }) => payoutId)
const later = { notBefore: Date.now() + 3_600_000 }

describe('a payout that was published as held for a person is held again by a ledger that was set back:', () => {
  test('a duplicate whose command is read before that of the earlier payment', async (t) => {
    const lost = await lostLedger(t)
    await lost.send()
    await lost.callBack()
    await lost.read('q')
    assert.deepEqual(await now(lost), ['p paid', 'q held duplicate'])
    const published = await lost.lose()
    await lost.read('q')
    await lost.read('p')
    await lost.recover(published, ABSENT)
    assert.deepEqual([await wave(lost), await now(lost)], [[], ['p paid', 'q held duplicate']])
    assert.deepEqual(await brokenVersions(lost.ledger), [])
  })

  test('one that also has a schedule', async (t) => {
    const lost = await lostLedger(t)
    await lost.read('p')
    await lost.read('q', later)
    const published = await lost.lose()
    await lost.read('q', later)
    await lost.recover(published, ABSENT)
    assert.deepEqual(await now(lost), ['q held duplicate'])
    const outcomes = await releasePayouts(
      { merchantId: 'acme', payoutIds: ['q'], ...WHO, payPeriod: 'month', known: null, shown: null },
      lost.ledger,
    )
    assert.match(
      releaseText(outcomes, 'is'),
      /waits until .* held as duplicate on .* before the ledger was set back/,
    )
    assert.deepEqual(await now(lost), ['q held schedule'])
  })

  test('even if the set-back ledger published it as queued before the recovery', async (t) => {
    const lost = await lostLedger(t)
    await lost.read('p')
    await lost.read('q')
    const published = await lost.lose()
    await lost.read('q')
    await lost.recover([...published, ...(await lost.published())], ABSENT)
    assert.deepEqual([await wave(lost), await now(lost)], [[], ['q held duplicate']])
  })

  for (const [what, since, state] of [
    ['tried to send it in vain', 'sendInVain', 'held'],
    ['has it under way', 'wave', 'review'],
  ] as const)
    test(`even if the set-back ledger ${what} before the recovery`, async (t) => {
      const lost = await lostLedger(t)
      await lost.read('earlier')
      await lost.read('p')
      const published = await lost.lose()
      await lost.read('p')
      await lost[since]()
      await lost.recover([...published, ...(await lost.published())], ABSENT, { duplicatesRefused: true })
      assert.deepEqual([await wave(lost), await now(lost)], [[], [`p ${state} duplicate`]])
    })

  test('but not one that was published as released', async (t) => {
    const lost = await lostLedger(t)
    await lost.read('p')
    await lost.read('q')
    await releasePayouts(
      { merchantId: 'acme', payoutIds: ['q'], ...WHO, payPeriod: 'month', known: null, shown: null },
      lost.ledger,
    )
    const published = await lost.lose()
    await lost.read('q')
    await lost.recover(published, ABSENT)
    assert.deepEqual(await wave(lost), ['q'])
  })

  test('bank details that changed since the beneficiary was paid, which only the read-back shows', async (t) => {
    const lost = await lostLedger(t)
    const read = () => lost.read('q', { beneficiaryId: 'asha', accountNo: '999999999999' })
    await lost.send({ beneficiaryId: 'asha' })
    await lost.callBack()
    await read()
    assert.deepEqual(await now(lost), ['p paid', 'q held beneficiary-changed'])
    const published = await lost.lose()
    await lost.read('p', { beneficiaryId: 'asha' })
    await read()
    await lost.recover(published, ABSENT)
    assert.deepEqual([await wave(lost), await now(lost)], [[], ['p paid', 'q held beneficiary-changed']])
  })
})
