import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { ACCOUNT, payoutsOf } from '../../../test/ledger.ts'
import { HAS_IT, lostLedger, WHO, type WrittenMessage } from '../../../test/lost-ledger.ts'
import { PROMISING } from '../../../test/two-accounts.ts'
import type { OrderReport } from '../../domain/evidence.ts'
import type { ApplyAnswer, QueryAnswer } from '../../domain/gateway-answers.ts'
import type { Instant } from '../../domain/instant.ts'
import type { QueryPolicy } from '../../domain/payout/next-query.ts'
import { recordApply } from '../../domain/payout/record-apply-answer.ts'
import { recordAbsence } from '../../domain/payout/record-query-answer.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { cancelPayouts } from '../cancel-payouts.ts'
import { decided } from '../operations.fixture.ts'
import { reversePayout } from '../reversal.ts'
import { publishedBeyond } from './published-beyond.ts'
import { readBackPublished } from './read-back-published.ts'
import { listOpen } from './recovery.ts'

const KEY = { merchantId: 'acme', payoutId: 'p' }
export const exchange = {}
export const TIMEOUT: ApplyAnswer = { kind: 'unknown', reason: 'timeout', exchange }
export const NOT_SENT: ApplyAnswer = { kind: 'not-sent', reason: 'ECONNREFUSED', exchange }
export const REFUSED: ApplyAnswer = {
  kind: 'refused',
  code: 'LIMIT',
  message: 'day limit',
  exchange,
}
export const LATER: ApplyAnswer = {
  ...{ kind: 'retry-later', code: 'LATER', message: '', balanceShort: false, exchange },
}
export const acceptedAs = (agentpayOrderId: string): ApplyAnswer => ({
  ...{ kind: 'accepted', agentpayOrderId, fee: null, status: 'processing', exchange },
})

export const reported = (fields: Partial<OrderReport>): QueryAnswer => {
  assert.ok(HAS_IT.kind === 'found')
  return { kind: 'found', report: { ...HAS_IT.report, ...fields } }
}
export const AP1 = { agentpayOrderId: 'AP1', utr: '632611200001' }
export const AP2 = { agentpayOrderId: 'AP2', utr: '632611200002' }

export const makeReady = sql<object>`update payouts set ready = true where state = 'queued'`
const sentAt = sql<object, { at: Instant }>`select max(claimed_at) as at from attempts`
const known = sql<object, { accountId: string | null; doubted: boolean }>`
  select account_id, doubted from payouts where payout_id = 'p'`

/** What `lose` deletes, but the outbox: what was not published by then, the backup does not have. */
const LEDGER = `array['payouts', 'payout_commands', 'history', 'attempts', 'anomalies', 'payments', 'reopened_payments',
  'beneficiary_payments', 'holds', 'files', 'merchants', 'recovered_payouts']`

const backUp = sql<object>`
  do $$
  declare name text;
  begin
    foreach name in array ${{ fragment: LEDGER }} loop
      execute format('drop table if exists backup_%1$s; create table backup_%1$s as select * from %1$s', name);
    end loop;
  end $$`

const restoreBackUp = sql<object>`
  do $$
  declare
    name text;
    columns text;
  begin
    foreach name in array ${{ fragment: LEDGER }} loop
      select string_agg(attname, ', ') into columns from pg_attribute
      where attrelid = name::regclass and attnum > 0 and not attisdropped and attgenerated = '';
      execute format('insert into %1$s (%2$s) overriding system value select %2$s from backup_%1$s', name, columns);
    end loop;
  end $$`

/** All history that there is goes with its months; that of now on is kept. */
export const monthsPass = sql<object>`
  do $$
  declare
    part text;
  begin
    for part in select inhrelid::regclass from pg_inherits where inhparent = 'history'::regclass loop
      execute 'drop table ' || part;
    end loop;
    execute format('create table history_kept partition of history for values from (%L) to (%L)',
                   date_trunc('milliseconds', clock_timestamp()), now() + interval '1 year');
    create table history_default partition of history default;
  end $$`

export type SetBack = Awaited<ReturnType<typeof setBackLedger>>

/** A ledger that can be lost again and again, while Kafka keeps what was published. */
export async function setBackLedger(t: TestContext) {
  const lost = await lostLedger(t)
  const { ledger, db } = lost
  const published: WrittenMessage[] = []
  let isOwnFirst = false
  const all = async () => {
    const own = await lost.published()
    return isOwnFirst ? [...own, ...published] : [...published, ...own]
  }
  const say = (answer: ApplyAnswer, queryPolicy: QueryPolicy = PROMISING) =>
    decided(ledger, 'p', (payout, now) => recordApply(payout, payout.attempt, answer, queryPolicy, now))
  const sayAbsent = (afterMs = 0) =>
    decided(ledger, 'p', (payout, now) => {
      const asked = { askedAt: now + afterMs, presence: true }
      return recordAbsence(payout, {}, asked, PROMISING, now)
    })
  const sayUnpaid = async (answer: ApplyAnswer) => {
    await say(answer)
    await sayAbsent(PROMISING.graceMs)
  }
  return {
    ...lost,
    ...{ say, sayAbsent },
    /** The gateway refuses it, and has no order of it. */
    refuse: () => sayUnpaid(REFUSED),
    /** The gateway says "later", and has no order of it. */
    turnAway: () => sayUnpaid(LATER),
    /** It reads the command of `p` (again), and sends it as version 2. */
    async sendAs2(account = ACCOUNT) {
      await lost.read()
      assert.equal((await lost.wave(account)).length, 1)
      assert.deepEqual(await lost.now(), ['submitting 2 1'])
    },
    async sendAgain() {
      await db.run(makeReady, {})
      assert.equal((await lost.wave()).length, 1)
    },
    sentAt: async () => (await db.run(sentAt, {}))[0]?.at,
    cancel: () => cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, ledger),
    /** The ledger loses all; Kafka keeps what `isKept` says. */
    async lose(isKept: (message: WrittenMessage, at: number, all: WrittenMessage[]) => boolean = () => true) {
      published.push(...(await lost.lose()).filter(isKept))
    },
    /** Kafka has these besides. */
    keep: (messages: readonly WrittenMessage[]) => published.push(...messages),
    /** Kafka has what the ledger publishes before what it kept. */
    publishOwnFirst: () => {
      isOwnFirst = true
    },
    recover: async (answer: Parameters<typeof lost.recover>[1] = HAS_IT) => lost.recover(await all(), answer),
    /** Returns how many payouts lacked something. */
    async readBack(): Promise<number> {
      await listOpen(db, await lost.raise())
      return readBackPublished(['acme'], lost.topics(await all()))
    },
    /** What a recovery reads: it is what Kafka has now. */
    kept: async () => lost.topics(await all()),
    async startAnew(ownFirst: boolean) {
      await lost.lose()
      published.length = 0
      isOwnFirst = ownFirst
    },
    backUp: () => db.run(backUp, {}),
    restoreBackUp: () => db.run(restoreBackUp, {}),
    beyond: async () => publishedBeyond(lost.topics(await all())),
    state: async () => (await payoutsOf(ledger)).map(({ state, reason }) => [state, reason])[0],
    known: async () => (await db.run(known, {}))[0],
    reverse: async () => (await reversePayout({ ...KEY, ...WHO, anomalyId: null, shown: null }, ledger)).kind,
  }
}
