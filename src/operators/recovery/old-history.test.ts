import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { anomaliesOf } from '../../../test/ledger.ts'
import { ABSENT, WHO } from '../../../test/lost-ledger.ts'
import { onTimer } from '../../domain/payout/on-timer.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import { become, change } from '../../domain/payout/transition.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { decided } from '../operations.fixture.ts'
import { resolvePayout } from '../resolve-payout.ts'
import { acceptedAs, makeReady, monthsPass, reported, setBackLedger, TIMEOUT } from './set-back.fixture.ts'

const KEY = { merchantId: 'acme', payoutId: 'p' }
const SOON_MS = 500

for (const what of ['is kept', 'was dropped'])
  test(`a scheduled payout that was published as cancelled is not sent after a recovery if its earlier history ${what}`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.read('p', { notBefore: systemClock.now() + SOON_MS })
    if (what === 'was dropped') await lost.db.run(monthsPass, {})
    await lost.backUp()
    await lost.cancel()
    await lost.lose()
    await lost.restoreBackUp()
    await delay(SOON_MS)
    await decided(lost.ledger, 'p', (payout, now) => {
      const decision = onTimer(payout, QUERY_POLICY, now)
      return 'change' in decision ? decision : assert.fail('its time has not come')
    })
    await lost.recover(ABSENT)
    assert.deepEqual(await lost.state(), ['review', 'end-published'])
    await lost.db.run(makeReady, {})
    assert.equal((await lost.wave()).length, 0)
  })

for (const what of ['is kept', 'was dropped'])
  test(`two ends that persons gave a payout under one version are told if its earlier history ${what}`, async (t) => {
    const lost = await setBackLedger(t)
    const { ledger, db } = lost
    await lost.sendAs2()
    await lost.say(TIMEOUT)
    await decided(ledger, 'p', (p) => change(p, become(p, 'review', { reason: 'expired' }), 'CLOCK', null))
    if (what === 'was dropped') await db.run(monthsPass, {})
    await lost.backUp()
    const asked = { ...KEY, ...WHO, shown: null }
    await resolvePayout({ ...asked, resolution: { kind: 'paid', utr: '632611200001' } }, ledger)
    await lost.lose()
    await lost.restoreBackUp()
    await resolvePayout({ ...asked, resolution: { kind: 'failed' } }, ledger)
    assert.notEqual(await lost.beyond(), null)
    await lost.recover()
    assert.deepEqual(await lost.state(), ['review', 'end-published'])
    assert.deepEqual(await anomaliesOf(ledger), ['end-published'])
  })

for (const what of ['is kept', 'was dropped'])
  test(`a payout that was cancelled, and paid since, is told if its earlier history ${what}`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.read()
    if (what === 'was dropped') await lost.db.run(monthsPass, {})
    await lost.backUp()
    await lost.cancel()
    await lost.lose()
    await lost.restoreBackUp()
    await lost.sendAgain()
    await lost.say(acceptedAs('AP1'))
    await lost.callBack({ status: 'success', agentpayOrderId: 'AP1', utr: '632611200001' })
    await lost.recover(reported({ agentpayOrderId: 'AP1' }))
    assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
  })

for (const status of ['success', 'failed'] as const)
  test(`the end (${status}) of an attempt whose history was dropped stands, although a review in between was lost`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.sendAs2()
    await lost.say(acceptedAs('AP1'))
    await lost.db.run(monthsPass, {})
    await lost.backUp()
    await decided(lost.ledger, 'p', (p) =>
      change(p, become(p, 'review', { reason: 'expired' }), 'CLOCK', null),
    )
    await lost.lose()
    await lost.restoreBackUp()
    const said = { status, agentpayOrderId: 'AP1', utr: status === 'success' ? '632611200001' : null }
    await lost.callBack(said)
    const ended = [await lost.state(), await lost.now()]
    await lost.recover(reported(said))
    assert.deepEqual([await lost.state(), await lost.now()], ended)
    assert.deepEqual(await anomaliesOf(lost.ledger), [])
  })

test('what happened before the history that is kept is not taken for lost', async (t) => {
  const lost = await setBackLedger(t)
  await lost.sendAs2()
  await lost.say(acceptedAs('AP1'))
  await lost.db.run(monthsPass, {})
  await lost.callBack({ status: 'success', agentpayOrderId: 'AP1', utr: '632611200001' })
  assert.equal(await lost.beyond(), null)
  await lost.recover()
  assert.deepEqual([await lost.state(), await anomaliesOf(lost.ledger)], [['paid', null], []])
})
