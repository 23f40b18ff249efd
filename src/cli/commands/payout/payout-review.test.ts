import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { freshDatabase } from '../../../../test/database.ts'
import { accepted, registered, testEnvironment } from '../../../../test/ledger.ts'
import { openLedger } from '../../../app/ledger.ts'
import { readConfig } from '../../../config/config.ts'
import { command } from '../../../domain/commands/command.fixture.ts'
import type { OrderReport } from '../../../domain/evidence.ts'
import { applyEvidence } from '../../../domain/payout/apply-evidence.ts'
import { QUERY_POLICY } from '../../../domain/payout/payout.fixture.ts'
import { recordApply } from '../../../domain/payout/record-apply-answer.ts'
import { recordAbsence } from '../../../domain/payout/record-query-answer.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { raiseFence } from '../../../ledger/sql/fence.ts'
import { accept, decided, submit } from '../../../operators/operations.fixture.ts'
import { takeFenceDown } from '../../../operators/recovery/sql/fence.ts'
import { silentLogger } from '../../../platform/log.ts'
import { Lifecycle } from '../../../platform/running/lifecycle.ts'
import { payoutd } from '../../cli.fixture.ts'
import { withLedger } from '../../with-ledger.ts'

const BY = ['--by', 'asha', '--reason', 'the bank says so']

/**
 * An environment whose ledger holds `lost`, for which the gateway reports that it has no such order, and `returned`, which the
 * gateway paid and then reported as failed.
 */
async function withReview(t: TestContext, extra: NodeJS.ProcessEnv = {}): Promise<NodeJS.ProcessEnv> {
  const env = testEnvironment(await freshDatabase(t), extra)
  const config = readConfig(env)
  const lifecycle = new Lifecycle(silentLogger)
  await registered(config)
  const { ledger } = await openLedger(config, lifecycle)
  await accepted(ledger, config, [command('lost', { metadata: { reference: 'EMP7' } }), command('returned')])
  await decided(ledger, 'lost', submit)
  await decided(ledger, 'lost', (payout, now) =>
    recordApply(payout, 1, { kind: 'unknown', reason: 'timeout', exchange: {} }, QUERY_POLICY, now),
  )
  const notFound = { response: { retCode: 'ORDER_NOT_FOUND' }, httpStatus: 200 }
  await decided(ledger, 'lost', (payout, now) =>
    recordAbsence(payout, notFound, { askedAt: now, presence: true }, QUERY_POLICY, now),
  )
  await decided(ledger, 'returned', submit)
  await decided(ledger, 'returned', accept)
  for (const status of ['success', 'failed'] as const) await reported(ledger, 'returned', status)
  await lifecycle.stop()
  return env
}

const reported = (ledger: Ledger, payoutId: string, status: OrderReport['status']): Promise<void> =>
  decided(ledger, payoutId, (payout, now) => {
    const { orderNo, amount } = payout
    const known = { agentpayOrderId: `AP-${payoutId}`, fee: null, utr: '632611200009', errorMessage: null }
    const report: OrderReport = { ...known, mchOrderNo: orderNo ?? '', amount, status, exchange: {} }
    return applyEvidence(payout, report, 'CALLBACK', QUERY_POLICY, now)
  })

test('payouts that wait for a person are listed with their evidence, for people and for programs', async (t) => {
  const env = await withReview(t)
  const { code, stdout } = await payoutd(['payout', 'review'], env)
  assert.equal(code, 0)
  assert.match(
    stdout,
    /^payout lost of acme, in review for \d+ (s|min), .*\n {2}₹50,000\.00 to account ••••6789, .*; batch november, row 1, reference EMP7\n {2}proved-absent: /,
  )
  assert.match(
    stdout,
    /QUERY {5}→ review \(proved-absent\) {2}retCode=ORDER_NOT_FOUND\n {2}decide with: payoutd payout resolve lost /,
  )
  const lines = (await payoutd(['payout', 'review', '--json'], env)).stdout.trimEnd().split('\n')
  assert.equal(lines.length, 1)
  assert.doesNotMatch(lines[0] ?? '', /sealed/)
  const { payout, evidence } = JSON.parse(lines[0] ?? '')
  assert.deepEqual([payout.payoutId, payout.amount, evidence.attempts.length], ['lost', '5000000', 0])
})

test('a decision shows what it would do, then does it, and a second one is reported as too late', async (t) => {
  const env = await withReview(t)
  const paid = ['payout', 'resolve', 'lost', '--paid', '--utr', '632611200001', ...BY]
  const dry = await payoutd([...paid, '--dry-run'], env)
  assert.equal(dry.code, 0)
  assert.match(
    dry.stdout,
    /^payout lost would be paid, with UTR 632611200001\n {2}₹50,000\.00 to account ••••6789/,
  )
  assert.match(
    dry.stdout,
    /, by QUERY: retCode=ORDER_NOT_FOUND\n {2}payoutd publishes this, .*; nothing was done\n$/,
  )
  const failed = await payoutd(['payout', 'resolve', 'lost', '--failed', ...BY, '--dry-run'], env)
  assert.match(
    failed.stdout,
    /^payout lost would be failed: the bank says so\n {2}₹50,000\.00 to account ••••6789/,
  )
  assert.match(
    failed.stdout,
    /you cannot undo it: whoever requested the payout may pay it again; nothing was done\n$/,
  )
  await withLedger(readConfig(env), async ({ db }) => {
    await db.run(raiseFence, { merchantId: 'acme', by: 'asha', reason: 'a restore', feeEstimate: 0n })
    const fenced = await payoutd(['payout', 'resolve', 'lost', '--failed', ...BY, '--dry-run'], env)
    assert.match(fenced.stdout, /stays in review: its merchant is fenced because .* run payoutd recover, /)
    const { stdout } = await payoutd([...paid, '--dry-run'], env)
    assert.match(stdout, /\n {2}its merchant is fenced because .*it may have been sent and paid since; /)
    await db.run(takeFenceDown, { merchantId: 'acme' })
  })
  const unasked = await payoutd(paid, env)
  assert.deepEqual([unasked.code, unasked.stderr], [1, 'there is no terminal to ask on: give --yes\n'])
  const done = await payoutd([...paid, '--yes', '--json'], env)
  const { payout, ...outcome } = JSON.parse(done.stdout)
  assert.deepEqual(outcome, { payoutId: 'lost', kind: 'resolved', done: true })
  assert.deepEqual([payout.state, payout.utr, payout.amount], ['paid', '632611200001', '5000000'])
  const again = await payoutd([...paid, '--yes'], env)
  assert.equal(again.code, 1)
  assert.match(
    again.stdout,
    /^payout lost is paid, and you can resolve only a payout in review: it has ended; if its money comes back, /,
  )
})

test('a UTR proves the payment of one payout only', async (t) => {
  const env = await withReview(t)
  const { code, stdout } = await payoutd(
    ['payout', 'resolve', 'lost', '--paid', '--utr', '632611200009', ...BY, '--yes'],
    env,
  )
  assert.equal(code, 1)
  assert.match(
    stdout,
    /^payout lost cannot be paid with UTR 632611200009: payout returned of acme has that UTR, and each transfer has its own\n/,
  )
})

test('an operator who would resolve a payout sees what the gateway reported after its end, and the consequences', async (t) => {
  const env = await withReview(t)
  const config = readConfig(env)
  const resolve = async (id: string) =>
    (await payoutd(['payout', 'resolve', id, '--failed', '--attempt', '1', ...BY, '--yes'], env)).stdout
  assert.match(
    await resolve('returned'),
    /it has ended as paid, but the gateway also said that it failed \(anomaly \S{36}\): /,
  )
  await withLedger(config, async (ledger) => {
    await accepted(ledger, config, [command('late')])
    await decided(ledger, 'late', submit)
    for (const status of ['failed', 'success'] as const) await reported(ledger, 'late', status)
  })
  const [anomalyId] =
    (await resolve('late')).match(/[\da-f-]{36}(?=\); payoutd published it as failed, so whoever)/) ?? []
  assert.ok(anomalyId)
  const { stdout } = await payoutd(['anomaly', 'show', anomalyId], env)
  assert.match(stdout, new RegExp(`warn them, then run payoutd anomaly acknowledge ${anomalyId}\n$`))
})

test("before a payout is sent again, the operator sees what is known of duplicates, and the gateway's last report", async (t) => {
  const known = /\n {2}the gateway last reported on it at \S+ \S+Z, by QUERY: retCode=ORDER_NOT_FOUND/
  const resend = ['payout', 'resolve', 'lost', '--resend', ...BY]

  const refusing = await withReview(t)
  const would = await payoutd([...resend, '--dry-run'], refusing)
  assert.match(
    would.stdout,
    /^payout lost would be queued to be sent again under order P\S{29}, until \d{4}-/,
  )
  assert.match(would.stdout, /\n {2}the gateway promised to refuse a second order with the same number/)
  assert.match(would.stdout, known)
  const whole = 'payoutd payout resolve lost --merchant acme --resend --attempt 1'
  assert.ok(would.stdout.includes(`\n  to do this without a question: ${whole} --by … --reason … --yes\n`))
  assert.ok((await payoutd(['payout', 'show', 'lost'], refusing)).stdout.includes(whole))
  const paying = await withReview(t, { GATEWAY_DIALECT: 'default' })
  const refused = await payoutd([...resend, '--attempt', '1', '--yes'], paying)
  assert.equal(refused.code, 1)
  assert.match(
    refused.stdout,
    /^payout lost cannot be sent again: the gateway may have it, and might pay it twice/,
  )
  assert.match(refused.stdout, /\n {2}the gateway has not promised to refuse a second order/)
  assert.match(refused.stdout, known)
  assert.match((await payoutd(['payout', 'show', 'lost'], paying)).stdout, /state +review/)
  const confirmedOf = (attempt: string) =>
    payoutd([...resend, '--attempt', attempt, '--confirmed-absent-by', 'R. Iyer', '--yes'], paying)
  const ofAnother = await confirmedOf('2')
  assert.equal(ofAnother.code, 1)
  assert.match(ofAnother.stdout, /stays in review: you decide about attempt 2, but the latest is attempt 1/)
  const confirmed = await confirmedOf('1')
  assert.equal(confirmed.code, 0)
  assert.match((await payoutd(['payout', 'show', 'lost'], paying)).stdout, /state +queued \(resent\)/)
})

test('an operator who sends a payout again learns that somebody else asked to cancel it', async (t) => {
  const env = await withReview(t)
  const cancel = ['payout', 'cancel', 'lost', '--by', 'hr', '--reason', 'left the company', '--yes']
  assert.match(
    (await payoutd(cancel, env)).stdout,
    /stays in review: the cancel request is recorded, and a person decides/,
  )
  const resend = ['payout', 'resolve', 'lost', '--resend', ...BY]
  const would = await payoutd([...resend, '--dry-run'], env)
  assert.match(would.stdout, /\n {2}somebody asked to cancel it \(hr: left the company\)\n/)
  const refused = await payoutd([...resend, '--attempt', '1', '--yes'], env)
  assert.equal(refused.code, 1)
  assert.match(
    refused.stdout,
    /^payout lost is not sent again: somebody asked to cancel it \(hr: left the company\)/,
  )
  assert.match(
    (await payoutd(['payout', 'show', 'lost'], env)).stdout,
    /to be cancelled +hr: left the company\n/,
  )
})

test('a contradictory decision is refused before any question is asked', async (t) => {
  const env = testEnvironment(await freshDatabase(t))
  const resolve = async (...options: string[]) => {
    const { code, stderr } = await payoutd(['payout', 'resolve', 'lost', ...BY, ...options], env)
    assert.equal(code, 1)
    return stderr
  }
  assert.match(await resolve(), /which decision\? give --paid, --failed or --resend/)
  assert.match(await resolve('--paid'), /--paid needs --utr/)
  assert.match(await resolve('--paid', '--failed'), /'--paid' cannot be used with option '--failed'/)
  assert.match(await resolve('--failed', '--deadline', '2026-12-01T18:00Z'), /need --resend/)
  assert.match(
    await resolve('--paid', '--utr', '632611200001', '--attempt', '1'),
    /needs --failed or --resend/,
  )
  for (const what of ['--resend', '--failed'])
    assert.match(await resolve(what, '--yes'), new RegExp(`with --yes, ${what} needs --attempt`))
  assert.match(await resolve('--resend', '--deadline', 'tomorrow'), /a moment with its time zone/)
  assert.match(await resolve('--failed', '--by', ' '), /It must say something/)
})

test('a transfer that came back is confirmed once, by the anomaly that reports it', async (t) => {
  const env = await withReview(t)
  const reverse = ['payout', 'reverse', 'returned', ...BY]
  const would = await payoutd([...reverse, '--dry-run'], env)
  assert.match(
    would.stdout,
    /^payout returned would be published as returned, ₹50,000\.00, by anomaly \S+; it stays paid\n {2}the gateway last reported on it at .*, by CALLBACK: ; nothing was done\n$/,
  )
  assert.equal((await payoutd([...reverse, '--yes'], env)).code, 0)
  const again = await payoutd([...reverse, '--yes'], env)
  assert.equal(again.code, 1)
  assert.match(
    again.stdout,
    /^payout returned was already published as returned, by asha at \S+ \S+Z: the bank says so\n$/,
  )
  const { stdout } = await payoutd(['payout', 'show', 'returned'], env)
  assert.match(stdout, /state +paid, version 4\n/)
  assert.match(stdout, /returned +as asha confirmed at /)
})

test('an anomaly is listed, shown and acknowledged; a second time changes nothing and is no failure', async (t) => {
  const env = await withReview(t)
  const [listed, ...others] = (await payoutd(['anomaly', 'list', '--json'], env)).stdout.trimEnd().split('\n')
  assert.equal(others.length, 0)
  const { anomalyId, kind, payoutId } = JSON.parse(listed ?? '')
  assert.deepEqual([kind, payoutId], ['contradiction', 'returned'])
  const acknowledge = ['anomaly', 'acknowledge', anomalyId, ...BY]
  const dry = await payoutd([...acknowledge, '--dry-run'], env)
  assert.equal(dry.stdout, `anomaly ${anomalyId} would be acknowledged; nothing was done\n`)
  const shown = await payoutd(['anomaly', 'show', anomalyId], env)
  assert.match(
    shown.stdout,
    /: contradiction\n {2}the gateway reports failed for a payout that is paid \(failed, \S+, order /,
  )
  assert.match(shown.stdout, /\n {2}not acknowledged\n/)
  assert.match(
    shown.stdout,
    /\n {2}if its money came back, run payoutd payout reverse returned; if not, payoutd anomaly acknow/,
  )
  const done = await payoutd([...acknowledge, '--yes'], env)
  assert.deepEqual([done.code, done.stdout], [0, `anomaly ${anomalyId} is acknowledged\n`])
  const again = await payoutd([...acknowledge, '--yes'], env)
  assert.equal(again.code, 0)
  assert.match(again.stdout, /was already acknowledged, by asha at /)
  const unknown = await payoutd(['anomaly', 'acknowledge', 'nonsense', ...BY, '--yes'], env)
  assert.deepEqual(
    [unknown.code, unknown.stdout],
    [1, 'anomaly nonsense does not exist: payoutd anomaly list shows all\n'],
  )
})
