import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ApplyAnswer } from '../../domain/gateway-answers.ts'
import { paise } from '../../domain/money.ts'
import {
  afterAnswers,
  answersToTell,
  type CircuitState,
  canChangePace,
  gate,
  type MerchantFunds,
  type PaceLimits,
  rateAfter,
  WARM,
} from './merchant-gate.ts'

const NOW = Date.UTC(2026, 10, 30, 9)
const LIMITS: PaceLimits = { maxInFlight: 64, ratePerSecond: null }
const exchange = {}

const funds = (fields: Partial<MerchantFunds> = {}): MerchantFunds => ({
  pausedReason: null,
  recoveringSince: null,
  available: paise(1_000_000n),
  snapshotAt: NOW - 1_000,
  snapshotInDoubt: paise(0),
  snapshotClaimed: paise(0),
  claimedTotal: paise(0),
  feeEstimate: paise(500n),
  feeShare: null,
  rateNext: null,
  learnedRate: null,
  rateLoweredAt: null,
  rateRaisedAt: null,
  warmUp: WARM,
  consecutiveFailures: 0,
  refusals: 0,
  circuitOpened: 0,
  circuitOpenUntil: null,
  ...fields,
})

const circuit = (fields: Partial<CircuitState> = {}): CircuitState => ({
  available: paise(1_000_000n),
  feeEstimate: paise(500n),
  feeShare: null,
  claimedTotal: paise(0),
  learnedRate: null,
  rateLoweredAt: null,
  rateRaisedAt: null,
  warmUp: WARM,
  consecutiveFailures: 0,
  refusals: 0,
  circuitOpened: 0,
  circuitOpenUntil: null,
  circuitReason: null,
  ...fields,
})

const good: ApplyAnswer = {
  kind: 'accepted',
  agentpayOrderId: 'AP1',
  fee: paise(500n),
  status: 'processing',
  exchange,
}
const lost: ApplyAnswer = { kind: 'unknown', reason: 'timeout', exchange }
const notSent: ApplyAnswer = { kind: 'not-sent', reason: 'ECONNREFUSED', exchange }
const short: ApplyAnswer = {
  kind: 'retry-later',
  code: 'BALANCE_SHORT',
  message: '',
  balanceShort: true,
  exchange,
}
const tooFast: ApplyAnswer = { ...short, code: 'TOO_FAST', balanceShort: false }
const refused: ApplyAnswer = { kind: 'refused', code: 'IFSC_INVALID', message: '', exchange }
const times = (count: number, answer: ApplyAnswer) => Array.from({ length: count }, () => answer)

describe('how many may leave', () => {
  const room = (fields: Partial<MerchantFunds>, inFlight = 0, lagMs = 0, limits = LIMITS) =>
    gate(funds(fields), inFlight, lagMs, limits, NOW)

  test('all processes together stay within the merchant’s limit', () => {
    assert.equal(room({}, 60).room, 4)
    assert.deepEqual([room({}, 64).room, room({}, 64).closed], [0, 'in-flight'])
    assert.equal(room({}, 70).room, 0)
  })

  test('a merchant begins with a canary of 1, then 8, then all', () => {
    assert.equal(room({ warmUp: 0 }).room, 1)
    assert.equal(room({ warmUp: 0 }, 1).room, 0)
    assert.equal(room({ warmUp: 1 }).room, 8)
    assert.equal(room({ warmUp: WARM }).room, 64)
  })

  test('a paused merchant, a fenced one and an open circuit let nothing leave', () => {
    assert.equal(room({ pausedReason: 'audit' }).closed, 'paused')
    assert.equal(room({ recoveringSince: NOW - 1 }).closed, 'recovering')
    assert.equal(room({ circuitOpenUntil: NOW + 1 }).closed, 'circuit-open')
    assert.equal(room({ circuitOpenUntil: NOW }).closed, null)
    assert.equal(room({ pausedReason: 'audit' }).askBalance, false)
  })

  test('callbacks come first: their lag slows dispatch, then stops it', () => {
    assert.deepEqual([room({}, 0, 299).room, room({}, 0, 300).room], [64, 16])
    assert.deepEqual([room({}, 0, 1_500).room, room({}, 0, 1_500).closed], [0, 'callbacks-behind'])
  })

  test('nothing leaves before the balance is known, and dispatch asks for it', () => {
    const closed = room({ available: null })
    assert.deepEqual([closed.closed, closed.askBalance], ['balance-unknown', true])
  })

  test('dispatch asks for an old balance again, and uses the old one meanwhile', () => {
    assert.equal(room({ snapshotAt: NOW - 5_000 }).askBalance, false)
    const old = room({ snapshotAt: NOW - 5_001 })
    assert.deepEqual([old.askBalance, old.room], [true, 64])
  })

  test('sends use up the rate budget, which grows back with time', () => {
    const limits = { ...LIMITS, ratePerSecond: 10 }
    assert.equal(room({}, 0, 0, limits).room, 10)
    const rateNext = rateAfter(null, 10, 10, NOW)
    assert.deepEqual(
      [room({ rateNext }, 0, 0, limits).room, room({ rateNext }, 0, 0, limits).closed],
      [0, 'rate'],
    )
    assert.equal(gate(funds({ rateNext, snapshotAt: NOW }), 0, 0, limits, NOW + 500).room, 5)
  })

  test('a time written by a clock that was ahead, and was set back since, closes nothing', () => {
    const ahead = NOW + 3_600_000
    const limits = { ...LIMITS, ratePerSecond: 10 }
    assert.equal(room({ circuitOpenUntil: ahead }).closed, null)
    assert.equal(room({ rateNext: ahead }, 0, 0, limits).room, 10)
    assert.equal(room({ snapshotAt: ahead }).askBalance, true)
  })

  test('without a rate there is no budget to spend', () => {
    assert.equal(rateAfter(NOW, null, 10, NOW), null)
  })
})

describe('what answers do to the pace', () => {
  const HUNDRED = paise(10_000n)
  const KEPT = paise(500n)
  const after = (from: CircuitState, answers: ApplyAnswer[], at = NOW) =>
    afterAnswers(
      from,
      answers.map((answer) => ({ amount: HUNDRED, keptFee: from.feeEstimate, answer })),
      at,
    )
  const worthTelling = (answer: ApplyAnswer, found: CircuitState) =>
    canChangePace({ amount: HUNDRED, answer }, found)

  test('good answers end the canary, and payoutd expects their fee from then on', () => {
    const one = after(circuit({ warmUp: 0, feeEstimate: paise(0) }), [good])
    assert.deepEqual([one.warmUp, one.feeEstimate], [1, paise(500n)])
    assert.equal(after(circuit({ warmUp: 0 }), times(20, good)).warmUp, WARM)
    for (const fee of [paise(499n), null]) {
      assert.equal(after(circuit(), [{ ...good, fee }]).feeEstimate, 500n)
    }
  })

  test('a fee above what its claim kept for it counts as claimed, unless it is implausible', () => {
    const claimedAfter = (fee: bigint | null, keptFee: bigint) => {
      const answered = {
        amount: HUNDRED,
        keptFee: paise(keptFee),
        answer: { ...good, fee: fee === null ? null : paise(fee) },
      }
      return afterAnswers(circuit({ claimedTotal: paise(70_000) }), [answered, answered], NOW).claimedTotal
    }
    assert.deepEqual([claimedAfter(500n, 0n), claimedAfter(500n, 499n)], [71_000n, 70_002n])
    assert.deepEqual([claimedAfter(500n, 900n), claimedAfter(null, 900n)], [70_000n, 70_000n])
    assert.deepEqual([claimedAfter(10_000n, 0n), claimedAfter(10_001n, 0n)], [90_000n, 70_000n])
  })

  test('a run of refused connections opens the circuit, and says why', () => {
    assert.equal(after(circuit(), times(4, notSent)).circuitOpenUntil, null)
    const open = after(circuit(), times(5, notSent))
    assert.deepEqual(
      [open.circuitOpenUntil, open.warmUp, open.circuitReason],
      [NOW + 1_000, 0, '5 × ECONNREFUSED'],
    )
  })

  test('single unknown results do not open the circuit, a long run of them does', () => {
    assert.equal(after(circuit(), [...times(19, lost), good, ...times(19, lost)]).circuitOpenUntil, null)
    assert.equal(after(circuit(), times(20, lost)).circuitOpenUntil, NOW + 1_000)
  })

  test('a bad answer to the canary of an open circuit opens it for twice as long', () => {
    const again = after(circuit({ warmUp: 0, circuitOpened: 2 }), [notSent])
    assert.deepEqual([again.circuitOpenUntil, again.circuitOpened], [NOW + 4_000, 3])
    assert.equal(after(circuit({ warmUp: 0, circuitOpened: 30 }), [notSent]).circuitOpenUntil, NOW + 60_000)
  })

  test('a gateway that answers "later" to everything gets only a canary from then on', () => {
    for (const balanceShort of [false, true]) {
      const later = { ...short, balanceShort } as ApplyAnswer
      assert.equal(
        after(circuit(), [...times(499, later), good, ...times(499, later)]).circuitOpenUntil,
        null,
      )
      const open = after(circuit(), times(500, later))
      assert.deepEqual(
        [open.circuitOpenUntil, open.warmUp, open.circuitReason],
        [NOW + 1_000, 0, '500 × BALANCE_SHORT'],
      )
      assert.deepEqual(after(open, times(100, later)), open)
      const answer = [{ amount: HUNDRED, keptFee: KEPT, answer: later }]
      // It is tested with one payout a second, and stays open for people until the gateway accepts or refuses one.
      const probed = afterAnswers(open, answer, NOW + 1_000)
      const row = (count: number) => ({
        consecutiveFailures: count,
        circuitReason: `${count} × BALANCE_SHORT`,
      })
      assert.deepEqual(probed, { ...open, ...row(1), circuitOpenUntil: NOW + 2_000 })
      const again = afterAnswers(probed, answer, NOW + 2_000)
      assert.deepEqual(again, { ...open, ...row(2), circuitOpenUntil: NOW + 3_000 })
      const accepted = afterAnswers(probed, [{ amount: HUNDRED, keptFee: KEPT, answer: good }], NOW + 2_000)
      assert.deepEqual([accepted.circuitOpened, accepted.circuitReason, accepted.warmUp], [0, null, 1])
      // People are told long before, as a merchant with few payouts takes hours for such a run.
      assert.equal(after(circuit(), times(20, later)).circuitReason, '20 × BALANCE_SHORT')
      const cold = after(circuit({ warmUp: 0 }), times(20, later))
      assert.deepEqual([cold.circuitOpenUntil, cold.circuitReason], [NOW + 1_000, '20 × BALANCE_SHORT'])
    }
  })

  test('bad answers to payouts sent before the circuit opened do not keep it open for longer', () => {
    const open = after(circuit(), times(5, notSent))
    assert.deepEqual(after(open, times(30, lost)), open)
    assert.equal(
      afterAnswers(open, [{ amount: HUNDRED, keptFee: KEPT, answer: lost }], NOW + 1_000).circuitOpenUntil,
      NOW + 3_000,
    )
  })

  test('a bad answer to the canary of a merchant whose circuit never opened does not open it', () => {
    assert.equal(after(circuit({ warmUp: 0 }), [notSent]).circuitOpenUntil, null)
  })

  test('an answer about the payout, even a refusal, closes the circuit and ends a bad run', () => {
    const open = circuit({
      warmUp: 0,
      consecutiveFailures: 1,
      circuitOpened: 2,
      circuitOpenUntil: NOW,
      circuitReason: 'x',
    })
    const duplicate: ApplyAnswer = { kind: 'duplicate', code: 'DUPLICATE_ORDER', exchange }
    for (const answer of [good, refused, duplicate]) {
      const closed = after(open, [answer])
      assert.deepEqual(
        [closed.consecutiveFailures, closed.circuitOpened, closed.circuitOpenUntil, closed.circuitReason],
        [0, 0, null, null],
      )
    }
  })

  test('a gateway that refuses everything in the canary never opens the circuit, and people are told', () => {
    const told = after(circuit({ warmUp: 0 }), times(30, refused))
    assert.deepEqual(
      [told.circuitOpenUntil, told.warmUp, told.consecutiveFailures, told.refusals],
      [null, 0, 0, 30],
    )
    assert.equal(after(told, [lost, refused]).refusals, 31)
    assert.equal(after(told, [good]).refusals, 0)
    assert.equal(after(circuit(), times(30, refused)).refusals, 0)
  })

  test('what the gateway has already warms a merchant up as well', () => {
    const duplicate: ApplyAnswer = { kind: 'duplicate', code: 'DUPLICATE_ORDER', exchange }
    assert.equal(after(circuit({ warmUp: 0 }), times(20, duplicate)).warmUp, WARM)
  })

  test('bad answers with good ones between them are no row', () => {
    const mustTell = answersToTell()
    const found = circuit()
    const told = (answer: ApplyAnswer, merchantId = 'acme') =>
      mustTell(merchantId, { amount: HUNDRED, answer }, found)
    const answers = Array.from({ length: 60 }, (_, i) => (i % 3 === 0 ? lost : good))
    const written = answers.filter((answer) => told(answer))
    assert.deepEqual(written.slice(0, 4), [lost, good, lost, good])
    assert.deepEqual([after(found, written).consecutiveFailures, told(good)], [0, false])
    told(lost)
    assert.equal(told(good, 'bolt'), false)
    assert.equal(told(refused), true)
  })

  test('a gateway that takes only so many a second is sent about that many within a minute, and few more', () => {
    for (const limit of [2, 5, 60, 300]) {
      let state = circuit()
      const accepted: number[] = []
      let turnedAway = 0
      for (let second = 0; second < 120; second++) {
        const leaving = Math.floor(state.learnedRate ?? 800)
        const answers = Array.from({ length: leaving }, (_, i) => (i < limit ? good : tooFast))
        state = after(state, answers, NOW + second * 1_000)
        accepted.push(Math.min(leaving, limit))
        turnedAway += Math.max(0, leaving - limit)
      }
      const perSecond = accepted.slice(60).reduce((sum, each) => sum + each, 0) / 60
      assert.ok(perSecond >= limit * 0.7, `${perSecond} a second of ${limit}`)
      assert.ok(turnedAway < 1_300 + 120 * limit * 0.2, `${turnedAway} turned away`)
    }
  })

  test('single "later" answers slow nothing down, however many there are', () => {
    const single = after(circuit(), [tooFast, good, tooFast, tooFast, good])
    assert.equal(single.learnedRate, null)
    const met = after(circuit(), times(3, tooFast))
    assert.equal(met.learnedRate, 50)
    let state = met
    for (let second = 1; second < 60; second++)
      state = after(state, [...times(9, good), tooFast], NOW + second * 1_000)
    assert.equal(state.learnedRate, null)
    assert.ok((after(met, [good], NOW - 60_000).learnedRate ?? 0) > 50)
  })

  test('a balance that is short says nothing about how many a second the gateway takes', () => {
    assert.equal(after(circuit(), times(10, short)).learnedRate, null)
  })

  test('"balance short" voids the balance', () => {
    assert.equal(after(circuit(), [short]).available, null)
    assert.equal(after(circuit(), [{ ...short, balanceShort: false }]).available, 1_000_000n)
  })

  test('a good answer at full speed, or a refusal, need not be written to the merchant’s row; all others must', () => {
    const found = circuit()
    assert.equal(worthTelling(good, found), false)
    assert.equal(worthTelling(refused, found), false)
    assert.equal(worthTelling(lost, found), true)
    assert.equal(worthTelling(short, found), true)
    assert.equal(worthTelling(good, circuit({ feeEstimate: paise(499n) })), true)
    const paces = [{ warmUp: 8 }, { consecutiveFailures: 1 }, { circuitOpened: 1 }, { learnedRate: 50 }]
    for (const fields of paces) {
      assert.equal(worthTelling(good, circuit(fields)), true)
    }
  })
})
