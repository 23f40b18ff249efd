import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACCOUNT } from '../../../test/ledger.ts'
import { orderNumber } from '../../domain/identifiers.ts'
import { unknownAfterCrash } from '../../domain/payout/after-crash.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import { become } from '../../domain/payout/transition.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { applyEvidenceBatch } from '../../stages/outcomes/outcomes.ts'
import { decided } from '../operations.fixture.ts'
import { acceptedAs, exchange, reported, type SetBack, setBackLedger } from './set-back.fixture.ts'

const POLICY = { ...QUERY_POLICY, confirmations: 2 }
const AP2_FAILED = { status: 'failed', agentpayOrderId: 'AP2', utr: null } as const
const AP1_GOES_ON = reported({ status: 'processing', agentpayOrderId: 'AP1', utr: null })

async function hearsThatAp2Failed({ ledger, deps }: SetBack): Promise<void> {
  await decided(ledger, 'p', (before, now) => ({
    change: { before, after: unknownAfterCrash(before, POLICY, now), source: 'CLOCK', exchange },
  }))
  const answered = {
    ...{ merchantId: 'acme', mchOrderNo: orderNumber('acme', 'p', 1), source: 'QUERY' as const, ...ACCOUNT },
    ...{ queryPolicy: POLICY, answer: reported(AP2_FAILED) },
    ...{ askedAt: systemClock.now(), presence: true },
  }
  await applyEvidenceBatch([answered], deps)
}

/** Moves it through these states, each with its reason. */
async function move({ ledger }: SetBack, states: readonly (readonly ['held' | 'queued', string | null])[]) {
  for (const [state, reason] of states)
    await decided(ledger, 'p', (before) => ({
      change: { before, after: become(before, state, { reason }), source: 'CLOCK', exchange },
    }))
}

for (const [what, isRecovered] of [
  ['was never recovered', false],
  ['was recovered after its backup', true],
] as const)
  test(`the failure that a second lost ledger published does not hide the attempt of the first, if the second ${what}`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.sendAs2()
    await lost.lose()
    await lost.sendAs2()
    await lost.backUp()
    await lost.say(acceptedAs('AP2'))
    await lost.callBack(AP2_FAILED)
    if (isRecovered) await lost.recover(AP1_GOES_ON)
    await lost.lose()
    await lost.restoreBackUp()
    await hearsThatAp2Failed(lost)
    await lost.recover(AP1_GOES_ON)
    assert.deepEqual(await lost.state(), ['review', 'end-published'])
    await lost.callBack({ status: 'success', agentpayOrderId: 'AP1', utr: '632611200001' })
    assert.deepEqual(await lost.state(), ['paid', null])
  })

for (const [version, states] of [
  [2, [['held', 'details-sealed']]],
  [
    3,
    [
      ['held', 'details-sealed'],
      ['queued', null],
    ],
  ],
] as const)
  test(`a recovery of version ${version} does not take over that a second lost ledger cancelled what the first had sent`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.sendAs2()
    await lost.lose()
    await lost.read()
    await move(lost, states)
    await lost.backUp()
    await lost.cancel()
    await lost.lose()
    await lost.restoreBackUp()
    await lost.recover(AP1_GOES_ON)
    assert.deepEqual(await lost.state(), ['review', 'end-published'])
  })
