import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { Gateway } from '../devkit/oracle/gateway-books.ts'
import { type Sandbox, startSandbox } from '../devkit/sandbox/sandbox.ts'
import { type Role, startPayoutd } from '../src/app/start.ts'
import type { Config } from '../src/config/config.ts'
import type { Merchant } from '../src/config/merchants.ts'
import { command } from '../src/domain/commands/command.fixture.ts'
import { withAccount } from '../src/gateway/dialect/account.ts'
import { loadDialect } from '../src/gateway/dialect/dialect-file.ts'
import type { Ledger } from '../src/ledger/ledger.ts'
import { adoptSettings } from '../src/operators/gateway-settings.ts'
import { silentLogger } from '../src/platform/log.ts'
import { eventually } from '../src/platform/running/eventually.fixture.ts'
import { accepted, payoutsOf, testLedger } from './ledger.ts'

const MCH_ID = '1000100'
const KEY = randomBytes(12).toString('hex')
/**
 * Everything ends within a second or two; the gateway promises to refuse duplicates, so payoutd sends an absent
 * order again.
 */
const QUICK = loadDialect('sandbox', {
  absence: { graceMs: 300, confirmations: 2 },
  queryAfterMs: [150],
  leaseMs: 10_000,
  sendTimeoutMs: { connect: 200, headers: 400, body: 50 },
})
/** The gateway accepts the order, pays it, and never answers the apply; nor does it call back. */
const PAID_WITHOUT_A_WORD = '9999000005'

const folder = mkdtempSync(path.join(tmpdir(), 'accounts-'))
const sandboxes: Sandbox[] = []
after(async () => {
  await Promise.all(sandboxes.map((sandbox) => sandbox.stop()))
  rmSync(folder, { recursive: true })
})

async function gateway(name: string): Promise<{ url: string; books: Gateway }> {
  const sandbox = await startSandbox({
    state: path.join(folder, `${name}.sqlite`),
    merchants: [{ mchId: MCH_ID, key: KEY }],
    settleMs: 0,
    callbackRetries: [],
  })
  sandboxes.push(sandbox)
  return { url: sandbox.url, books: new Gateway(sandbox.url, MCH_ID) }
}
const [here, there] = await Promise.all([gateway('here'), gateway('there')])

/** A ledger, and the settings of payoutd: its merchant is at one of the two gateways. */
async function installation(t: TestContext) {
  const { ledger, config: read } = await testLedger(t)
  const base = { ...(read.merchants.get('acme') as Merchant), key: KEY, dialect: QUICK }
  const at = (baseUrl: string, fields: Partial<Merchant> = {}): Config => ({
    ...read,
    merchants: new Map([['acme', { ...base, baseUrl, ...fields }]]),
  })
  return { ledger, at }
}

const adopt = (ledger: Ledger, { merchants }: Config) => {
  const merchant = merchants.get('acme') as Merchant
  const configured = withAccount(merchant)
  return adoptSettings(
    ledger.db,
    configured,
    { by: 'asha', reason: 'we change the gateway' },
    async () => null,
  )
}

const start = (config: Config, roles: readonly Role[] = ['dispatch', 'outcomes']) =>
  startPayoutd(config, new Set(roles), silentLogger)

const states = async (ledger: Ledger) =>
  Object.fromEntries(
    (await payoutsOf(ledger)).map(({ payoutId, state, reason }) => [payoutId, [state, reason]]),
  )

const ordersAt = async ({ books }: typeof here, ledger: Ledger) => {
  const ours = new Map((await payoutsOf(ledger)).map(({ payoutId, orderNo }) => [orderNo, payoutId]))
  return (await books.orders()).flatMap(({ mchOrderNo }) => ours.get(mchOrderNo) ?? [])
}

/** `p1` was paid here, and nobody knows; then the account changes, and payouts at the other one settle. */
async function changeInDoubt(t: TestContext, former: (config: Config) => Partial<Merchant>) {
  const { ledger, at } = await installation(t)
  const config = at(here.url)
  await accepted(ledger, config, [command('p1', { accountNo: `${PAID_WITHOUT_A_WORD}12` })])
  // Without the role outcomes, so that nothing queries yet.
  const first = await start(config, ['dispatch'])
  t.after(() => first.stop())
  await eventually('the apply to be lost', async () => (await states(ledger)).p1?.[0] === 'unknown')
  await first.stop()

  const changed = at(there.url, former(config))
  await assert.rejects(start(changed), /base URL here is .*, but .* is in force.*payoutd merchant adopt acme/)
  await adopt(ledger, changed)
  await accepted(ledger, changed, [command('p2'), command('p3')])
  const second = await start(changed)
  t.after(() => second.stop())
  await eventually('the others to be paid there', async () => {
    const now = await states(ledger)
    return now.p2?.[0] === 'paid' && now.p3?.[0] === 'paid'
  })
  return { ledger, at }
}

test('a payout in doubt at one gateway account is settled by that account, and never paid by the next', async (t) => {
  const { ledger } = await changeInDoubt(t, ({ merchants }) => ({
    formerAccounts: [...merchants.values()],
  }))
  await eventually('p1 to be paid', async () => (await states(ledger)).p1?.[0] === 'paid')
  assert.deepEqual(await ordersAt(here, ledger), ['p1'])
  assert.deepEqual((await ordersAt(there, ledger)).sort(), ['p2', 'p3'])
})

test('a payout in doubt at an account that left the settings waits for a person, or until it is back and can be asked', async (t) => {
  const { ledger, at } = await changeInDoubt(t, () => ({}))
  await eventually('p1 to be in review', async () => (await states(ledger)).p1?.[0] === 'review')
  assert.deepEqual((await states(ledger)).p1, ['review', 'account-unknown'])
  assert.deepEqual((await ordersAt(there, ledger)).sort(), ['p2', 'p3'])
  const third = await start(at(there.url, { formerAccounts: [...at(here.url).merchants.values()] }))
  t.after(() => third.stop())
  await eventually('p1 to be paid', async () => (await states(ledger)).p1?.[0] === 'paid')
  assert.deepEqual(await ordersAt(here, ledger), ['p1'])
})

test('in a rolling restart with another account, old and new processes pay each payout once', async (t) => {
  const { ledger, at } = await installation(t)
  const config = at(here.url)
  const old = await start(config)
  t.after(() => old.stop())
  // The second stays with the gateway while the account changes.
  await accepted(ledger, config, [command('r1'), command('r2', { accountNo: `${PAID_WITHOUT_A_WORD}13` })])
  await eventually('r2 to be sent', async () => (await ordersAt(here, ledger)).includes('r2'))

  const changed = at(there.url, { formerAccounts: [...config.merchants.values()] })
  await adopt(ledger, changed)
  await accepted(ledger, changed, [command('r3'), command('r4')])
  await eventually('r1 and r2 to be settled by the old process', async () => {
    const now = await states(ledger)
    return now.r1?.[0] === 'paid' && now.r2?.[0] === 'paid'
  })
  assert.deepEqual(
    [(await states(ledger)).r3, (await states(ledger)).r4],
    [
      ['queued', null],
      ['queued', null],
    ],
  )
  await assert.rejects(start(config), /payoutd merchant adopt acme/)

  const fresh = await start(changed)
  t.after(() => fresh.stop())
  await eventually('r3 and r4 to be paid', async () => {
    const now = await states(ledger)
    return now.r3?.[0] === 'paid' && now.r4?.[0] === 'paid'
  })
  await old.stop()
  assert.deepEqual((await ordersAt(here, ledger)).sort(), ['r1', 'r2'])
  assert.deepEqual((await ordersAt(there, ledger)).sort(), ['r3', 'r4'])
})

test('two installations with different settings never take turns: the second does not start', async (t) => {
  const { at } = await installation(t)
  const running = await start(at(here.url))
  t.after(() => running.stop())
  await assert.rejects(
    start(at(here.url, { key: 'another key' })),
    /key \(by its fingerprint\) here is [0-9a-f]{16}, but /,
  )
  await assert.rejects(start(at(here.url, { mchId: '77' })), /mchId here is 77, but 1000100 is in force/)
  const dialect = { ...QUICK, queryAfterMs: [200] }
  await assert.rejects(start(at(here.url, { dialect })), /its dialect here has other content/)
})
