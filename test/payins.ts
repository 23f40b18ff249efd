import type { TestContext } from 'node:test'
import { paise } from '../src/domain/money.ts'
import type {
  PayinCreateAnswer,
  PayinRecoverAnswer,
  PayinReport,
} from '../src/domain/payin/gateway-answers.ts'
import type { Payin } from '../src/domain/payin/payin.ts'
import type { PayinState } from '../src/domain/payin/states.ts'
import { QUERY_POLICY } from '../src/domain/payout/payout.fixture.ts'
import { type CollectDeps, createPayin } from '../src/payins/collect.ts'
import type { PayinOutcomesDeps } from '../src/payins/outcomes.ts'
import type { PayinRequest } from '../src/payins/request.ts'
import { silentLogger } from '../src/platform/log.ts'
import { Metrics } from '../src/platform/metrics.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { ACCOUNT, testLedger } from './ledger.ts'
import { outboxMessages } from './outbox-messages.ts'

export const POLICY = {
  ...QUERY_POLICY,
  queryAfterMs: [1_000, 1_000],
  graceMs: 5_000,
  confirmations: 2,
  duplicatesRefused: true,
}

export const REQUEST: PayinRequest = {
  amount: paise(50_000n),
  currency: 'INR',
  accountName: 'Dev Nair',
  phoneNumber: '9876501234',
  payerEmail: 'dev.nair@example.in',
  remark: 'Order 7',
  returnUrl: 'https://shop.example.in/thanks?order=7',
}

export const accepted = (payinId: string): PayinCreateAnswer => ({
  kind: 'accepted',
  payOrderId: `PO${payinId.slice(1, 9)}`,
  payParams: {
    payMethod: 'urlJump',
    payUrl: `https://pay.example.in/${payinId}`,
    qrString: `upi://pay?tr=${payinId}`,
    url: null,
    upi: null,
  },
  exchange: { note: 'created' },
})

const SUBMITTED: PayinRecoverAnswer = {
  kind: 'submitted',
  mchOrderNo: null,
  errorMessage: null,
  exchange: {},
}
export const timeout: PayinCreateAnswer = { kind: 'unknown', reason: 'timeout', exchange: {} }

export const report = (
  { payinId, payOrderId, amount }: Payin,
  status: PayinReport['status'],
): PayinReport => ({
  mchOrderNo: payinId,
  payOrderId,
  status,
  amount,
  currency: 'INR',
  utr: status === 'paid' ? '632611200001' : null,
  productId: null,
  voucherMap: null,
  paidAt: status === 'paid' ? Date.UTC(2026, 10, 21, 12) : null,
  errorMessage: null,
  notifyStatus: null,
  exchange: { note: status },
})

/** A ledger with payins of ₹500, each created at a gateway with the given answer; by default it accepts. */
export async function payinLedger(t: TestContext, answer: (payinId: string) => PayinCreateAnswer = accepted) {
  const { ledger, config, codec } = await testLedger(t)
  const collect: CollectDeps = {
    ledger,
    fingerprintKey: config.fingerprintKey,
    clock: systemClock,
    log: silentLogger,
    collectors: new Map([
      [
        'acme',
        {
          ...ACCOUNT,
          leaseMs: 60_000,
          sendTimeoutMs: 20_000,
          expireMs: 3_600_000,
          queryPolicy: POLICY,
          create: async ({ mchOrderNo }) => answer(mchOrderNo),
          recover: new Map([[ACCOUNT.accountId, async () => SUBMITTED]]),
        },
      ],
    ]),
  }
  const outcomeDeps: PayinOutcomesDeps = {
    ledger,
    terms: new Map([['acme', { mchIds: new Map([[ACCOUNT.accountId, '1000100']]), queryPolicy: POLICY }]]),
    counted: new Metrics().counter('evidence_total', 'test', ['source', 'outcome']),
  }
  const create = async (idempotencyKey: string): Promise<Payin> => {
    const created = await createPayin(
      { merchantId: 'acme', idempotencyKey, request: REQUEST, traceparent: null },
      collect,
    )
    if (!('payin' in created)) throw new Error(`not created: ${created.kind}`)
    return created.payin
  }
  return { ledger, config, codec, collect, outcomeDeps, create }
}

export type StoredPayin = { payinId: string; state: PayinState; reason: string | null; version: number }
export const storedPayins = sql<object, StoredPayin>`
  select payin_id, state, reason, version from payins order by created_at, payin_id`

/** Payins whose versions have a gap or a repeat: there must be none, ever. */
export const brokenPayins = sql<object, { payinId: string }>`
  select p.payin_id from payins p
  where p.version <> (select count(*) from history h
                      where h.merchant_id = p.merchant_id and h.payin_id = p.payin_id and h.version is not null)
     or p.version <> (select max(h.version) from history h
                      where h.merchant_id = p.merchant_id and h.payin_id = p.payin_id)`

export const outboxOf = sql<{ topic: string }, { key: string; eventId: string; value: Buffer }>`
  select key, event_id, value from ${outboxMessages} where topic = ${'topic'} order by position, n`
