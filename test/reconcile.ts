import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startSandbox } from '../devkit/sandbox/sandbox.ts'
import { openLedger } from '../src/app/ledger.ts'
import { readConfig } from '../src/config/config.ts'
import type { Merchant } from '../src/config/merchants.ts'
import { command } from '../src/domain/commands/command.fixture.ts'
import { DECISIONS } from '../src/domain/decisions.ts'
import { orderNumber } from '../src/domain/identifiers.ts'
import { paise } from '../src/domain/money.ts'
import { createGatewayClient } from '../src/gateway/client.ts'
import { accountOf } from '../src/gateway/dialect/account.ts'
import { queryPolicyOf } from '../src/gateway/dialect/dialect.ts'
import { decided, submit } from '../src/operators/operations.fixture.ts'
import type { FoundOrder } from '../src/operators/reconcile/reconcile.ts'
import { silentLogger } from '../src/platform/log.ts'
import { Metrics } from '../src/platform/metrics.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { Lifecycle } from '../src/platform/running/lifecycle.ts'
import { applyEvidenceBatch } from '../src/stages/outcomes/outcomes.ts'
import { freshDatabase } from './database.ts'
import { accepted, registered, testEnvironment } from './ledger.ts'

/** The amount of every payout here. */
export const AMOUNT = 10_000n
/** The sandbox charges ₹5 for a payout. */
export const FEE = 500n

/**
 * A ledger with a sandbox that settles at once and never calls back: `send` makes payouts that the sandbox has but
 * payoutd has no report of, `pay` makes payouts that both report as paid.
 */
export async function besideSandbox(t: TestContext) {
  const folder = mkdtempSync(path.join(tmpdir(), 'reconcile-'))
  const key = randomBytes(12).toString('hex')
  const sandbox = await startSandbox({
    state: path.join(folder, 'state.sqlite'),
    merchants: [{ mchId: '1000100', key }],
    settleMs: 0,
    callbackRetries: [],
  })
  const env = testEnvironment(await freshDatabase(t), { GATEWAY_BASE_URL: sandbox.url, GATEWAY_KEY: key })
  const config = readConfig(env)
  const lifecycle = new Lifecycle(silentLogger)
  await registered(config)
  const { ledger, codec } = await openLedger(config, lifecycle)
  const merchant = config.merchants.get('acme') as Merchant
  const { baseUrl, mchId, dialect, tls } = merchant
  const { accountId, settingsHash } = accountOf(merchant)
  const client = createGatewayClient({
    ...{ baseUrl, mchId, key, dialect, tls },
    clock: systemClock,
    connections: 4,
  })
  t.after(async () => {
    await lifecycle.stop()
    await client.close()
    await sandbox.stop()
    rmSync(folder, { recursive: true })
  })
  const orderNo = (payoutId: string) => orderNumber('acme', payoutId, 1)

  const settle = async (mchOrderNo: string, answer: FoundOrder): Promise<void> => {
    const asked = {
      accountId,
      baseUrl,
      settingsHash,
      queryPolicy: queryPolicyOf(dialect),
      askedAt: 0,
      presence: false,
    }
    const counted = new Metrics().counter('evidence_total', 'test', ['source', 'outcome'])
    const queryPolicies = new Map([['acme', queryPolicyOf(dialect)]])
    const deps = { ledger, decisions: DECISIONS, queryPolicies, counted, log: silentLogger }
    await applyEvidenceBatch([{ merchantId: 'acme', mchOrderNo, source: 'QUERY', answer, ...asked }], deps)
  }

  async function send(...payoutIds: string[]): Promise<void> {
    const commands = payoutIds.map((payoutId) => command(payoutId, { amount: paise(AMOUNT) }))
    await accepted(ledger, config, commands)
    for (const each of commands) {
      await decided(ledger, each.payoutId, submit)
      const answer = await client.apply(
        { ...each, mchOrderNo: orderNo(each.payoutId), notifyUrl: 'http://127.0.0.1:9/never' },
        { mayStillSend: () => true },
      )
      assert.equal(answer.kind, 'accepted')
    }
  }

  async function pay(...payoutIds: string[]): Promise<void> {
    await send(...payoutIds)
    for (const payoutId of payoutIds) await settle(orderNo(payoutId), await ended(orderNo(payoutId)))
  }

  async function ended(mchOrderNo: string): Promise<FoundOrder> {
    for (;;) {
      const answer = await client.query({ mchOrderNo })
      if (answer.kind === 'found' && answer.report.status === 'success') return answer
      await delay(5)
    }
  }

  return { env, config, ledger, codec, db: ledger.db, client, accountId, settle, send, pay, ended, orderNo }
}
