import { Gauge } from 'prom-client'
import type { Merchant } from '../config/merchants.ts'
import type { ConnectedAccount } from '../gateway/accounts.ts'
import { longestSendMs, promisesOf } from '../gateway/dialect/dialect.ts'
import type { Metrics } from '../platform/metrics.ts'
import { Dispatch, type Sender } from '../stages/dispatch/dispatch.ts'
import { KeyTrial } from '../stages/dispatch/undecryptable.ts'
import { callbackPath } from '../stages/outcomes/callback-endpoint.ts'
import type { Shared } from './shared.ts'

export async function startDispatch(shared: Shared, publicUrl: string): Promise<Dispatch> {
  const {
    config,
    safeguards,
    ledger,
    gateways,
    onCommit,
    queryPolicies,
    metrics,
    lifecycle,
    clock,
    processId,
    log,
  } = shared
  const { claim, maySend, decisions } = safeguards
  const senders = new Map<string, Sender>()
  for (const [merchantId, [current]] of gateways) {
    const merchant = config.merchants.get(merchantId) as Merchant
    senders.set(merchantId, senderOf(merchant, current, publicUrl + callbackPath('payout', merchantId)))
  }
  const dispatch = new Dispatch({
    claim,
    maySend,
    decisions,
    ledger,
    senders,
    queryPolicies,
    sealing: config.sealing,
    fingerprintKey: config.fingerprintKey,
    owner: processId,
    inFlight: config.inFlight,
    clock,
    log,
    answered: metrics.counter('apply_answers_total', 'Apply calls by the answer', ['merchant', 'answer']),
    took: metrics.seconds('apply_seconds', 'Duration of apply calls', []),
  })
  outdatedGauge(metrics, dispatch)
  lifecycle.own('apply calls', (overdue) => dispatch.drain(overdue))
  const wake = lifecycle.loop('dispatch', () => dispatch.turn())
  onCommit((name) => {
    if (name !== 'take in commands') return
    dispatch.lookNow()
    wake()
  })
  const keyTrial = new KeyTrial(ledger, config.sealing, log)
  lifecycle.loop('payouts that waited for a key', (sign) => keyTrial.turn(sign))
  return dispatch
}

function outdatedGauge({ registry }: Metrics, dispatch: Dispatch): void {
  new Gauge({
    name: 'payoutd_merchant_outdated',
    help: '1 while this process sends nothing for the merchant, because other settings are in force or its version is too old; absent otherwise',
    labelNames: ['merchant'],
    registers: [registry],
    collect() {
      this.reset()
      for (const merchant of dispatch.outdated) this.set({ merchant }, 1)
    },
  })
}

export function senderOf(
  { maxInFlight, ratePerSecond }: Merchant,
  { client, dialect, ...account }: ConnectedAccount,
  notifyUrl: string,
): Sender {
  return {
    account: { ...account, promises: promisesOf(dialect) },
    limits: { maxInFlight, ratePerSecond },
    leaseMs: dialect.leaseMs,
    sendTimeoutMs: longestSendMs(dialect.sendTimeoutMs),
    apply: ({ orderNo, amount, currency }, details, mayStillSend) =>
      client.apply(
        { ...details, mchOrderNo: orderNo as string, amount, currency, notifyUrl },
        { mayStillSend },
      ),
    balance: () => client.balance(),
  }
}
