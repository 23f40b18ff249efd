import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { Gateway } from '../devkit/oracle/gateway-books.ts'
import { startSandbox } from '../devkit/sandbox/sandbox.ts'
import { encoderOf } from '../src/app/ledger.ts'
import { type Role, startPayoutd } from '../src/app/start.ts'
import { payoutd } from '../src/cli/cli.fixture.ts'
import { readConfig } from '../src/config/config.ts'
import type { Merchant } from '../src/config/merchants.ts'
import { command } from '../src/domain/commands/command.fixture.ts'
import { orderNumber } from '../src/domain/identifiers.ts'
import { withAccount } from '../src/gateway/dialect/account.ts'
import type { Ledger } from '../src/ledger/ledger.ts'
import { schemaSubjects, topicNames } from '../src/messages/topics.ts'
import { adoptSettings } from '../src/operators/gateway-settings.ts'
import { pauseMerchant, resumeMerchant } from '../src/operators/pause.ts'
import { silentLogger } from '../src/platform/log.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { openCodec } from '../src/platform/registry/codec.ts'
import { connectRegistry } from '../src/platform/registry/registry.ts'
import { eventually } from '../src/platform/running/eventually.fixture.ts'
import { freshDatabase } from './database.ts'
import { accepted, payoutsOf, registered, testEnvironment } from './ledger.ts'

const KEY = randomBytes(12).toString('hex')
const folder = mkdtempSync(path.join(tmpdir(), 'promise-'))
after(() => rmSync(folder, { recursive: true }))
const WHO = { by: 'asha', reason: 'the gateway says that it does not refuse duplicates after all' }
const BY = ['--by', WHO.by, '--reason', WHO.reason]
const QUICK = {
  ...{ extends: 'sandbox', queryAfterMs: [150], leaseMs: 3_000 },
  sendTimeoutMs: { connect: 200, headers: 400, body: 50 },
}
const dialect = (duplicateApply: 'refused' | 'unknown', graceMs: number) => {
  const file = path.join(folder, `${duplicateApply}.json`)
  writeFileSync(file, JSON.stringify({ ...QUICK, duplicateApply, absence: { graceMs, confirmations: 2 } }))
  return file
}
const REFUSED = dialect('refused', 300)
const UNKNOWN = dialect('unknown', 3_100)
/** The sandbox pays these, and never answers. */
const UNANSWERED = '999900000512'

const queriesOf = sql<{ payoutId: string }, { queries: number }>`
  select queries from payouts where payout_id = ${'payoutId'}`

/**
 * A payout `p` at a gateway that pays one number as often as asked, though the dialect `begun` may promise
 * otherwise. The gateway pays it, but payoutd gets no report: the answer and the callbacks are lost, and queries
 * find only another order.
 */
async function world(t: TestContext, begun: string) {
  const sandbox = await startSandbox({
    state: path.join(folder, `${randomBytes(4).toString('hex')}.sqlite`),
    merchants: [{ mchId: '1000100', key: KEY }],
    ...{ settleMs: 0, callbackRetries: [], dialect: { duplicateApply: 'unknown' } },
  })
  t.after(() => sandbox.stop())
  const database = await freshDatabase(t)
  const env = testEnvironment(database, { GATEWAY_BASE_URL: sandbox.url, GATEWAY_KEY: KEY })
  const config = (dialect: string) => readConfig({ ...env, GATEWAY_DIALECT: dialect })
  const read = config(begun)
  await registered(read)
  const topics = topicNames(read.topicPrefix)
  const codec = await openCodec(connectRegistry(read.registry), schemaSubjects(topics))
  const ledger: Ledger = { db: database.db, topics, encode: encoderOf(codec, topics) }
  const books = new Gateway(sandbox.url, '1000100')
  const fault = async (fault: object) => {
    const answer = await fetch(`${sandbox.url}/_sandbox/faults`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...fault, percent: 100 }),
    })
    assert.equal(answer.status, 201)
  }
  const state = async (id: string) => (await payoutsOf(ledger)).find(({ payoutId }) => payoutId === id)
  const timesPaid = async () => {
    const orderNo = orderNumber('acme', 'p', 1)
    return (await books.orders()).filter(({ mchOrderNo, status }) => mchOrderNo === orderNo && status === 2)
      .length
  }
  const start = async (dialect: string, roles: Role[] = ['dispatch', 'outcomes']) => {
    const started = await startPayoutd(config(dialect), new Set(roles), silentLogger)
    t.after(() => started.stop())
    return started
  }
  await accepted(ledger, read, [command('known')])
  const first = await start(begun)
  await eventually('known to be paid', async () => (await state('known'))?.state === 'paid')
  await fault({ fault: 'lost-callback', operation: 'payoutCallback' })
  await fault({
    ...{ fault: 'not-found', operation: 'queryPayout' },
    except: [orderNumber('acme', 'known', 1)],
  })
  await accepted(ledger, read, [command('p', { accountNo: UNANSWERED })])
  await eventually('p to be paid', async () => (await timesPaid()) === 1)
  return {
    ...{ ledger, env, first, start, timesPaid },
    async adopt(dialect: string) {
      const merchant = config(dialect).merchants.get('acme') as Merchant
      await adoptSettings(ledger.db, withAccount(merchant), WHO, async () => null)
    },
    /** Waits until `p` has this state and reason; the gateway has paid it once. */
    async comesTo(state_: string, reason: string) {
      await eventually(`p to be ${state_} (${reason})`, async () => {
        const payout = await state('p')
        return payout?.state === state_ && payout.reason === reason
      })
      assert.equal(await timesPaid(), 1)
    },
    async asked(): Promise<number> {
      return (await ledger.db.run(queriesOf, { payoutId: 'p' }))[0]?.queries ?? 0
    },
  }
}

test('after a gateway’s promise is withdrawn, a payout that was queued by it is in review', async (t) => {
  const { ledger, env, first, adopt, start, comesTo } = await world(t, REFUSED)
  await pauseMerchant(ledger.db, { merchantId: 'acme', feeEstimate: null, ...WHO })
  await comesTo('queued', 'proved-absent')
  await first.stop()
  const would = await payoutd(['merchant', 'adopt', 'acme', '--dry-run', ...BY], {
    ...env,
    GATEWAY_DIALECT: UNKNOWN,
  })
  assert.match(would.stdout, /; 1 that rely on a promise of the gateway/)
  await adopt(UNKNOWN)
  await start(UNKNOWN)
  await resumeMerchant(ledger.db, { merchantId: 'acme', ...WHO })
  await comesTo('review', 'no-promise')
})

test('a process whose settings are no longer in force keeps querying, and concludes nothing', async (t) => {
  const { first, adopt, start, asked, comesTo } = await world(t, REFUSED)
  await adopt(UNKNOWN)
  await start(UNKNOWN, ['dispatch'])
  const before = await asked()
  await eventually('the first process to ask four times more', async () => (await asked()) >= before + 4)
  await first.stop()
  await start(UNKNOWN, ['outcomes'])
  await comesTo('review', 'proved-absent')
})

test('nobody can have a payout sent again with settings that are not in force', async (t) => {
  const { env, comesTo } = await world(t, UNKNOWN)
  await comesTo('review', 'proved-absent')
  const resend = (dialect: string, ...more: string[]) => {
    const decision = [
      '--resend',
      '--attempt',
      '1',
      '--by',
      'asha',
      '--reason',
      'they do not have it',
      '--yes',
    ]
    const args = ['payout', 'resolve', 'p', '--merchant', 'acme', ...decision, ...more]
    return payoutd(args, { ...env, GATEWAY_DIALECT: dialect })
  }
  const byNow = await resend(UNKNOWN)
  assert.deepEqual([byNow.code, /--confirmed-absent-by/.test(byNow.stdout)], [1, true], byNow.stderr)
  for (const more of [[], ['--confirmed-absent-by', 'R. Iyer']]) {
    const byOthers = await resend(REFUSED, ...more)
    assert.equal(byOthers.code, 1)
    assert.match(byOthers.stdout, /others are in force for its merchant/)
  }
  await comesTo('review', 'proved-absent')
})
