import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import {
  ACCOUNT,
  accepted,
  anomaliesOf,
  attemptOf,
  brokenVersions,
  payoutsOf,
  setBalance,
  testLedger,
  upsertMerchant,
} from '../../../test/ledger.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import type { ApplyAnswer } from '../../domain/gateway-answers.ts'
import { paise } from '../../domain/money.ts'
import type { QueryPolicy } from '../../domain/payout/next-query.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { silentLogger } from '../../platform/log.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { openByAccount } from '../../queries/open-by-account.ts'
import { reportLag } from '../outcomes/sql/lag.ts'
import { type Claim, type ClaimOptions, claim } from './claim.ts'
import { canChangePace, WARM } from './merchant-gate.ts'
import { type ApplyOutcome, recordAnswers } from './record-answers.ts'
import { balanceWatermark, lockFunds, saveBalance } from './sql/funds.ts'

const TABLES = new Map<string, QueryPolicy>([
  ['acme', { ...QUERY_POLICY, graceMs: 1_000, duplicatesRefused: true }],
])
const exchange = {}
const acceptedAs = (id: string): ApplyAnswer => ({
  kind: 'accepted',
  agentpayOrderId: id,
  fee: paise(500n),
  status: 'processing',
  exchange,
})
const atFullSpeed = sql<{ warmUp: number }>`update merchants set warm_up = ${'warmUp'}`
const funds = sql<
  object,
  { claimedTotal: bigint; warmUp: number; available: bigint | null; consecutiveFailures: number }
>`
  select claimed_total, warm_up, available, consecutive_failures from merchants`
const turnedAway = sql<object>`update payouts set attempt = 1, turned_away = true where payout_id <> 'large'`
const halfOpen = sql<object>`update merchants set circuit_opened = 1, circuit_open_until = now() - interval '1 s', warm_up = 0`
const queueAgain = sql<object>`update payouts set state = 'queued', ready = true where state = 'submitting'`
const newerOnly = sql<object>`update compatibility set oldest = '9999_later'`
const toBeCancelled = sql<object>`update payouts set cancel_request = 'asha: wrong person' where payout_id = 'p000'`
const notes = sql<{ payoutId: string }, { note: string }>`
  select exchange ->> 'note' as note from history where payout_id = ${'payoutId'} and exchange is not null`
const addSettings = sql<{ settingsHash: string; accountId: string; mchId: string }>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values ('acme', ${'settingsHash'}, ${'accountId'}, '', ${'mchId'}, '', '')`
const adopt = sql<{
  settingsHash: string
}>`update merchants set settings_hash = ${'settingsHash'}, available = null`
const nextApply = sql<object>`update merchants set rate_next = '2026-11-21T12:00:00.000750Z'`
const amounts = sql<object, { amount: bigint }>`select amount from payouts`
const messages = sql<object, { value: Buffer }>`select value from ${outboxMessages}`
const attempts = sql<object, { payoutId: string; attempt: number; orderNo: string; owner: string }>`
  select payout_id, attempt, order_no, owner from attempts order by payout_id, attempt`

/** A merchant with a known balance, past its canary, and `count` payouts of ₹100 queued. */
async function ready(t: TestContext, count: number, balance = 10n ** 12n) {
  const { ledger, config, codec } = await testLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 500n })
  await setBalance(ledger.db, 'acme', balance)
  await ledger.db.run(atFullSpeed, { warmUp: WARM })
  await accepted(
    ledger,
    config,
    Array.from({ length: count }, (_, i) =>
      command(`p${String(i).padStart(3, '0')}`, { amount: paise(10_000n) }),
    ),
  )
  const options = (fields: Partial<ClaimOptions> = {}): ClaimOptions => ({
    merchantId: 'acme',
    atMost: 64,
    owner: 'me',
    leaseMs: 15_000,
    limits: { maxInFlight: 64, ratePerSecond: null },
    sealing: config.sealing,
    fingerprintKey: config.fingerprintKey,
    account: ACCOUNT,
    ...fields,
  })
  return { ledger, config, codec, options }
}

/** Claims as dispatch does: tries a merchant again while another process claims from it. */
async function claimOnceFree(...to: Parameters<typeof claim>): Promise<Claim> {
  for (;;) {
    const claimed = await claim(...to)
    if (claimed.gate.closed !== 'locked') return claimed
  }
}

describe('a claim', () => {
  test('commits the intent of each payout, with its attempt and order number, before anything is sent', async (t) => {
    const { ledger, options } = await ready(t, 3)
    const { wave } = await claim(ledger, options({ atMost: 2 }))
    assert.deepEqual(
      wave.map(({ payout }) => payout.payoutId),
      ['p000', 'p001'],
    )
    assert.deepEqual(
      (await payoutsOf(ledger)).map(({ state }) => state),
      ['submitting', 'submitting', 'queued'],
    )
    const stored = await ledger.db.run(attempts, {})
    assert.deepEqual(
      stored,
      wave.map(({ payout }) => ({
        payoutId: payout.payoutId,
        attempt: 1,
        orderNo: payout.orderNo,
        owner: 'me',
      })),
    )
  })

  test('takes higher priority first, then the older', async (t) => {
    const { ledger, config, options } = await ready(t, 2)
    await accepted(ledger, config, [command('urgent', { amount: paise(10_000n), priority: 5 })])
    const { wave } = await claim(ledger, options())
    assert.deepEqual(
      wave.map(({ payout }) => payout.payoutId),
      ['urgent', 'p000', 'p001'],
    )
  })

  test('stops at the first payout that the balance does not cover, fees included', async (t) => {
    const { ledger, options } = await ready(t, 5, 3n * 10_500n + 10_499n)
    const { wave, shortOf } = await claim(ledger, options())
    assert.equal(wave.length, 3)
    assert.equal(shortOf?.payoutId, 'p003')
    const again = await claim(ledger, options())
    assert.equal(again.wave.length, 0)
  })

  test('an open circuit is tested with what the balance covers, if that is only what was sent before', async (t) => {
    const { ledger, config, options } = await ready(t, 3, 10n ** 8n)
    await accepted(ledger, config, [command('large', { amount: paise(10n ** 9n) })])
    await ledger.db.run(turnedAway, {})
    await ledger.db.run(halfOpen, {})
    const { wave } = await claim(ledger, options())
    assert.deepEqual(
      wave.map(({ payout }) => payout.payoutId),
      ['p000'],
    )
  })

  test('opens no bank details behind the first payout that the balance does not cover', async (t) => {
    const { ledger, options } = await ready(t, 20, 2n * 10_500n)
    let opened = 0
    const { sealing } = options()
    const keys = new Map(sealing.keys)
    keys.get = (id) => {
      opened++
      return sealing.keys.get(id)
    }
    const { wave, shortOf } = await claim(ledger, options({ sealing: { ...sealing, keys } }))
    assert.deepEqual([wave.length, shortOf?.payoutId, opened], [2, 'p002', 3])
  })

  test('by eight processes at once takes each payout once and keeps the merchant’s limit', async (t) => {
    const { ledger, options } = await ready(t, 100)
    const limits = { maxInFlight: 40, ratePerSecond: null }
    const claims = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        claimOnceFree(ledger, options({ owner: `o${i}`, atMost: 10, limits })),
      ),
    )
    const taken = claims.flatMap(({ wave }) => wave.map(({ payout }) => payout.payoutId))
    assert.equal(new Set(taken).size, taken.length)
    assert.equal(taken.length, 40)
    assert.equal((await payoutsOf(ledger)).filter(({ state }) => state === 'submitting').length, 40)
    assert.equal((await ledger.db.run(funds, {}))[0]?.claimedTotal, 40n * 10_500n)
  })

  test('by eight processes at once keeps the rate budget', async (t) => {
    const { ledger, options } = await ready(t, 100)
    const limits = { maxInFlight: 64, ratePerSecond: 12 }
    const began = performance.now()
    const claims = await Promise.all(
      Array.from({ length: 8 }, () => claimOnceFree(ledger, options({ atMost: 10, limits }))),
    )
    const taken = claims.reduce((all, { wave }) => all + wave.length, 0)
    const seconds = (performance.now() - began) / 1000
    // 12 at once, and as many more as the budget regains between the first of the eight transactions and the last.
    assert.ok(taken >= 12 && taken <= 12 * (1 + seconds), `${taken} claimed in ${seconds} s`)
  })

  test('takes no more than the gateway seems to take in a second', async (t) => {
    const { ledger, options } = await ready(t, 20)
    await ledger.db.run(sql<object>`update merchants set learned_rate = 3.5`, {})
    assert.equal((await claim(ledger, options())).wave.length, 3)
    const next = await claim(ledger, options())
    assert.deepEqual([next.wave, next.gate.closed], [[], 'rate'])
  })

  test('subtracts later claims from a balance that payoutd asked for before them', async (t) => {
    const { ledger, options } = await ready(t, 10, 4n * 10_500n)
    const [mark] = await ledger.db.run(balanceWatermark, { merchantId: 'acme' })
    assert.equal((await claim(ledger, options({ atMost: 2 }))).wave.length, 2)
    // The gateway returns its balance from before it received these two.
    await ledger.db.run(saveBalance, {
      merchantId: 'acme',
      available: 4n * 10_500n,
      ...(mark as NonNullable<typeof mark>),
    })
    assert.equal((await claim(ledger, options())).wave.length, 2)
  })

  test('keeps nothing of the balance for what may be at an account with another merchant number', async (t) => {
    const { ledger, config, options } = await ready(t, 1)
    assert.equal((await claim(ledger, options())).wave.length, 1)
    const there = { ...ACCOUNT, accountId: 'there', settingsHash: 'h2' }
    const moved = { ...ACCOUNT, accountId: 'here, under another address', settingsHash: 'h3' }
    for (const account of [
      { ...ACCOUNT, mchId: '1' },
      { ...there, mchId: '2' },
      { ...moved, mchId: '1' },
    ])
      await ledger.db.run(addSettings, account)
    await accepted(ledger, config, [command('new', { amount: paise(10_000n) })])
    const claimedAt = async (account: typeof ACCOUNT) => {
      await ledger.db.run(adopt, account)
      const [mark] = await ledger.db.run(balanceWatermark, { merchantId: 'acme' })
      assert.ok(mark)
      await ledger.db.run(saveBalance, { merchantId: 'acme', available: 15_000n, ...mark })
      return (await claim(ledger, options({ account }))).wave.length
    }
    assert.equal(await claimedAt(moved), 0)
    assert.equal(await claimedAt(there), 1)
  })

  test('reads the time of the next apply with its microseconds: each claim would gain some of the budget', async (t) => {
    const { ledger } = await ready(t, 0)
    await ledger.db.run(nextApply, {})
    const [pace] = await ledger.db.run(lockFunds, { merchantId: 'acme' })
    assert.equal(Math.round(((pace?.rateNext ?? 0) % 1) * 1000), 750)
  })

  test('uses the newest balance: an older answer never replaces it', async (t) => {
    const { ledger, options } = await ready(t, 4)
    const [early] = await ledger.db.run(balanceWatermark, { merchantId: 'acme' })
    await claim(ledger, options({ atMost: 1 }))
    const [late] = await ledger.db.run(balanceWatermark, { merchantId: 'acme' })
    await ledger.db.run(saveBalance, {
      merchantId: 'acme',
      available: 77n,
      ...(late as NonNullable<typeof late>),
    })
    await ledger.db.run(saveBalance, {
      merchantId: 'acme',
      available: 99n,
      ...(early as NonNullable<typeof early>),
    })
    assert.equal((await ledger.db.run(funds, {}))[0]?.available, 77n)
  })

  test('waits for the callbacks of its own merchant, and of no other', async (t) => {
    const { ledger, options } = await ready(t, 2)
    const behind = { processId: 'slow', lagMs: 60_000 }
    await ledger.db.run(reportLag, { ...behind, merchantId: 'bolt' })
    const first = await claim(ledger, options({ atMost: 1 }))
    assert.deepEqual([first.wave.length, first.gate.closed], [1, null])
    await ledger.db.run(reportLag, { ...behind, merchantId: 'acme' })
    assert.equal((await claim(ledger, options())).gate.closed, 'callbacks-behind')
  })

  test('takes nothing if the gateway settings of its process are not in force', async (t) => {
    const { ledger, options } = await ready(t, 1)
    const { wave, gate } = await claim(
      ledger,
      options({ account: { ...ACCOUNT, settingsHash: 'another key' } }),
    )
    assert.deepEqual([wave, gate.closed, gate.askBalance], [[], 'other-settings', false])
    assert.equal((await claim(ledger, options())).wave.length, 1)
  })

  test('takes nothing if its process is too old for the tables', async (t) => {
    const { ledger, options } = await ready(t, 1)
    await ledger.db.run(newerOnly, {})
    const { wave, gate } = await claim(ledger, options())
    assert.deepEqual([wave, gate.closed, gate.askBalance], [[], 'other-version', false])
  })

  test('takes no payout that is to be cancelled, even if it is queued', async (t) => {
    const { ledger, options } = await ready(t, 2)
    await ledger.db.run(toBeCancelled, {})
    const { wave } = await claim(ledger, options())
    assert.deepEqual(
      wave.map(({ payout }) => payout.payoutId),
      ['p001'],
    )
  })

  test('sends a payout that may be alive at another account to review, and names the account', async (t) => {
    const { ledger, options } = await ready(t, 2)
    await claim(ledger, options({ atMost: 1 }))
    await ledger.db.run(queueAgain, {})
    const { wave, aside } = await claim(ledger, options({ account: { ...ACCOUNT, accountId: 'there' } }))
    assert.deepEqual(
      [wave.map(({ payout }) => payout.payoutId), aside.map(({ why }) => why)],
      [['p001'], ['account-changed']],
    )
    const stored = (await payoutsOf(ledger)).map(({ state, reason, attempt }) => [state, reason, attempt])
    assert.deepEqual(stored, [
      ['review', 'account-changed', 1],
      ['submitting', null, 1],
    ])
    assert.deepEqual(await ledger.db.run(notes, { payoutId: 'p000' }), [
      { note: 'gateway account here, which is not the one in force, may still have an attempt' },
    ])
  })
})

describe('payoutd does not send a payout that somebody changed in the database:', () => {
  const changes = {
    'the amount': sql<object>`update payouts set amount = 9990000 where payout_id = 'p000'`,
    'the amount with the fingerprint of another payment to the same': sql<object>`
      with other as (
        select p.amount, c.fingerprint from payouts p join payout_commands c using (merchant_id, payout_id)
        where payout_id = 'large'
      ), changed as (
        update payout_commands c set fingerprint = other.fingerprint from other where payout_id = 'p000'
      )
      update payouts p set amount = other.amount from other where payout_id = 'p000'`,
    'the order number': sql<object>`update payouts set order_no = 'PANOTHER' where payout_id = 'p000'`,
    'the fingerprint': sql<object>`update payout_commands set fingerprint = '\\x00' where payout_id = 'p000'`,
  }
  for (const [what, change] of Object.entries(changes)) {
    test(`${what}; it is in review, with an anomaly, and others go on`, async (t) => {
      const { ledger, config, options } = await ready(t, 2)
      await accepted(ledger, config, [command('large', { amount: paise(5_000_000n) })])
      await ledger.db.run(change, {})
      const { wave, aside } = await claim(ledger, options())
      assert.deepEqual(
        wave.map(({ payout }) => payout.payoutId),
        ['p001', 'large'],
      )
      assert.deepEqual(
        aside.map(({ why, payout }) => [why, payout.payoutId]),
        [['tampered', 'p000']],
      )
      const stored = (await payoutsOf(ledger)).find(({ payoutId }) => payoutId === 'p000')
      assert.deepEqual([stored?.state, stored?.reason, stored?.attempt], ['review', 'tampered', 0])
      assert.deepEqual(await anomaliesOf(ledger), ['tampered'])
    })
  }

  test('from then on payoutd publishes the amount that it accepted', async (t) => {
    const { ledger, codec, options } = await ready(t, 1)
    const [taken] = await ledger.db.run(amounts, {})
    await ledger.db.run(changes['the amount'], {})
    await claim(ledger, options())
    assert.deepEqual(await ledger.db.run(amounts, {}), [taken])
    const published = await Promise.all(
      (await ledger.db.run(messages, {})).map(({ value }) => codec.decode(value)),
    )
    assert.equal(published.length, 3)
    for (const each of published) {
      assert.ok(each.kind === 'decoded')
      const { amount = taken?.amount } = each.value as { amount?: bigint }
      assert.equal(amount, taken?.amount)
    }
    assert.match(
      (await ledger.db.run(notes, { payoutId: 'p000' })).at(-1)?.note ?? '',
      /the stored amount was ₹99,900.00, but /,
    )
  })
})

describe('a fee', () => {
  const answered = async (ledger: Ledger, payoutId: string, amount: bigint, fee: bigint) => {
    const answer: ApplyAnswer = {
      kind: 'accepted',
      agentpayOrderId: `A${payoutId}`,
      fee: paise(fee),
      status: 'processing',
      exchange,
    }
    const outcome = { ...(await attemptOf(ledger, payoutId)), amount: paise(amount), answer, tell: true }
    await recordAnswers([outcome], { ledger, decisions: DECISIONS, queryPolicies: TABLES, log: silentLogger })
  }
  const balance = async (ledger: Ledger, available: bigint) => {
    await setBalance(ledger.db, 'acme', available)
  }

  test('of a large payout at a percentage keeps no small one waiting for the balance', async (t) => {
    const { ledger, config, options } = await ready(t, 20)
    const amount = 100_000_000n
    await accepted(ledger, config, [command('large', { amount: paise(amount), priority: 5 })])
    await claim(ledger, options({ atMost: 1 }))
    await answered(ledger, 'large', amount, 1_000_000n)
    await balance(ledger, 20n * 10_100n)
    const { wave, shortOf } = await claim(ledger, options())
    assert.deepEqual([wave.length, shortOf], [20, null])
  })

  test('that has a minimum and a percentage keeps no payout waiting for more than the balance', async (t) => {
    const { ledger, config, options } = await ready(t, 0)
    for (const [payoutId, amount, fee] of [
      ['large', 20_000_000n, 400_000n],
      ['rupee', 100n, 500n],
    ] as const) {
      await accepted(ledger, config, [command(payoutId, { amount: paise(amount) })])
      assert.equal((await claim(ledger, options())).wave.length, 1)
      await answered(ledger, payoutId, amount, fee)
    }
    await accepted(ledger, config, [command('salary', { amount: paise(2_000_000n) })])
    await balance(ledger, 2_300_000n)
    assert.equal((await claim(ledger, options())).wave.length, 1)
  })

  test('above what its claim kept leaves so much less for the next claim', async (t) => {
    const { ledger, options } = await ready(t, 3)
    await balance(ledger, 34_499n)
    await claim(ledger, options({ atMost: 2 }))
    await answered(ledger, 'p000', 10_000n, 2_000n)
    const { wave, shortOf } = await claim(ledger, options())
    assert.deepEqual([wave.length, shortOf?.payoutId], [0, 'p002'])
  })

  test('that is implausible stops nothing, is stored as reported, and is an anomaly', async (t) => {
    const { ledger, options } = await ready(t, 20)
    await claim(ledger, options({ atMost: 15 }))
    for (let i = 0; i < 15; i++)
      await answered(ledger, `p${String(i).padStart(3, '0')}`, 10_000n, 999_999_999_999_999_999n)
    await balance(ledger, 10n ** 12n)
    assert.equal((await claim(ledger, options())).wave.length, 5)
    assert.deepEqual(new Set(await anomaliesOf(ledger)), new Set(['fee-above-amount']))
    const open = await openByAccount(ledger.db)
    assert.deepEqual(
      open.map(({ count }) => count),
      [20],
    )
  })
})

describe('an answer', () => {
  const outcome = async (ledger: Ledger, payoutId: string, answer: ApplyAnswer): Promise<ApplyOutcome> => ({
    ...(await attemptOf(ledger, payoutId)),
    answer,
    tell: canChangePace(
      { amount: paise(10_000n), answer },
      {
        learnedRate: null,
        warmUp: WARM,
        consecutiveFailures: 0,
        circuitOpened: 0,
        feeEstimate: paise(500n),
        feeShare: null,
      },
    ),
  })

  test('is recorded for its own attempt', async (t) => {
    const { ledger, options } = await ready(t, 2)
    await claim(ledger, options())
    await recordAnswers(
      [
        await outcome(ledger, 'p000', acceptedAs('AP0')),
        await outcome(ledger, 'p001', { kind: 'unknown', reason: 'timeout', exchange }),
      ],
      { ledger, decisions: DECISIONS, queryPolicies: TABLES, log: silentLogger },
    )
    const states = (await payoutsOf(ledger)).map(({ state, version }) => [state, version])
    assert.deepEqual(states, [
      ['processing', 3],
      ['unknown', 3],
    ])
    assert.deepEqual(await brokenVersions(ledger), [])
  })

  test('"balance short" leaves the payout to a query, and voids the balance', async (t) => {
    const { ledger, options } = await ready(t, 1)
    await claim(ledger, options())
    const short: ApplyAnswer = {
      kind: 'retry-later',
      code: 'BALANCE_SHORT',
      message: '',
      balanceShort: true,
      exchange,
    }
    await recordAnswers([await outcome(ledger, 'p000', short)], {
      ledger,
      decisions: DECISIONS,
      queryPolicies: TABLES,
      log: silentLogger,
    })
    assert.deepEqual(
      (await payoutsOf(ledger)).map(({ state, ready }) => [state, ready]),
      [['unknown', false]],
    )
    assert.equal((await ledger.db.run(funds, {}))[0]?.available, null)
  })

  test('that is bad counts against the merchant, and a good one is not written to its row', async (t) => {
    const { ledger, options } = await ready(t, 2)
    await claim(ledger, options())
    await recordAnswers([await outcome(ledger, 'p000', { kind: 'unknown', reason: 'timeout', exchange })], {
      ledger,
      decisions: DECISIONS,
      queryPolicies: TABLES,
      log: silentLogger,
    })
    assert.equal((await ledger.db.run(funds, {}))[0]?.consecutiveFailures, 1)
  })
})
