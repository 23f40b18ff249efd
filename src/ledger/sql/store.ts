import type { Instant } from '../../domain/instant.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import type { OutboxRow } from '../../messages/messages.ts'
import { type Fragment, sql } from '../../platform/postgres/postgres.ts'
import type { KeptCount, Repeated, Subject } from '../evidence/repeats.ts'

/** A payout as it is now, since `lastChangeAt`. */
export type DatedPayout = Payout & { lastChangeAt: Instant }

/** The payouts are locked already, so each row keeps its ctid. */
export const updatePayouts = sql<{ payouts: readonly DatedPayout[] }>`
  update payouts p
  set state = c.state, reason = c.reason, version = c.version, attempt = c.attempt,
      account_id = c.account_id, doubted = c.doubted, turned_away = c.turned_away,
      absence_confirmed = c.absence_confirmed, unpaid_codes = c.unpaid_codes, refusal = c.refusal, unreported = c.unreported,
      said_otherwise = c.said_otherwise, cancel_request = c.cancel_request, order_shown = c.order_shown, order_besides = c.order_besides,
      agentpay_order_id = c.agentpay_order_id,
      fee = c.fee, utr = c.utr, deadline = to_timestamp(c.deadline / 1000),
      unknown_since = to_timestamp(c.unknown_since / 1000), queries = c.queries, not_found_count = c.not_found_count,
      asked_at = to_timestamp(c.asked_at / 1000), ready = c.ready, due_at = to_timestamp(c.due_at / 1000), updated_at = to_timestamp(c.last_change_at / 1000),
      sent_at = coalesce(p.sent_at, case when c.state = 'submitting' then now() when c.attempt > 0 then p.accepted_at end),
      paid_at = case when c.state = 'paid' and p.state <> 'paid' then to_timestamp(c.last_change_at / 1000) else p.paid_at end
  from (
    select given.*,
      (select ctid from payouts
       where payouts.merchant_id = given.merchant_id and payouts.payout_id = given.payout_id) as place
    from ${{
      rows: 'payouts',
      columns: {
        ...{
          merchantId: 'text',
          payoutId: 'text',
          state: 'text',
          reason: 'text',
          version: 'int',
          attempt: 'int',
        },
        ...{
          accountId: 'text',
          doubted: 'bool',
          turnedAway: 'bool',
          absenceConfirmed: 'bool',
          unpaidCodes: 'text',
        },
        ...{
          refusal: 'text',
          unreported: 'bool',
          saidOtherwise: 'text',
          cancelRequest: 'text',
          orderShown: 'bool',
          orderBesides: 'bool',
          agentpayOrderId: 'text',
          fee: 'bigint',
        },
        ...{ utr: 'text', deadline: 'float8', unknownSince: 'float8', queries: 'int', notFoundCount: 'int' },
        ...{ askedAt: 'float8', ready: 'bool', dueAt: 'float8', lastChangeAt: 'float8' },
      },
    }} given
  ) c
  where p.ctid = c.place`

/**
 * An entry of a payout's history. `version`: null where the evidence moved nothing; `exchange`: JSON text; `publishedAt`: the time
 * in the messages about it, null if there are none.
 */
export type HistoryRow = {
  merchantId: string
  payoutId: string
  version: number | null
  fromState: string | null
  toState: string
  reason: string | null
  source: string
  exchange: string | null
  publishedAt: Instant | null
}

/**
 * Distinguishes one piece of evidence from another by everything but how long it took and when payoutd asked for it. Only
 * evidence that moved nothing has one.
 */
export const evidenceHash: Fragment = {
  fragment: `sha256(convert_to(concat_ws(' ', to_state, source, (exchange - 'tookMs') #- '{request,reqTime}'), 'UTF8'))`,
}

export const insertHistory = sql<{ history: readonly HistoryRow[] }>`
  insert into history (merchant_id, payout_id, version, from_state, to_state, reason, source, exchange, published_at, evidence_hash)
  select merchant_id, payout_id, version, from_state, to_state, reason, source, exchange, to_timestamp(published_at / 1000),
    case when version is null then ${evidenceHash} end
  from ${{
    rows: 'history',
    columns: {
      ...{ merchantId: 'text', payoutId: 'text', version: 'int', fromState: 'text', toState: 'text' },
      ...{ reason: 'text', source: 'text', exchange: 'jsonb', publishedAt: 'float8' },
    },
  }} entries`

/**
 * Counts up evidence that moved nothing if the same is kept already. Returns the places, from 1, of what it counted. The payout
 * or payin is locked, so each row keeps its ctid. It looks at no more than MOST_UNMOVED rows, without an index of their own,
 * which every history entry would pay for.
 */
const countRepeated = (id: Fragment) => sql<{ repeated: readonly Repeated[] }, { place: number }>`
  update history h
  set times = h.times + kept.times, last_at = clock_timestamp()
  from (
    select given.times, given.n, found.*
    from (
      select merchant_id, id, times, n, ${evidenceHash} as evidence_hash
      from ${{
        rows: 'repeated',
        columns: {
          ...{ merchantId: 'text', id: 'text', toState: 'text', source: 'text' },
          ...{ exchange: 'jsonb', times: 'int' },
        },
        ordered: true,
      }} repeated
    ) given
    cross join lateral (
      select tableoid as part, ctid as row from history
      where history.merchant_id = given.merchant_id and history.${id} = given.id and version is null
        and history.evidence_hash = given.evidence_hash
      limit 1
    ) found
  ) kept
  where h.tableoid = kept.part and h.ctid = kept.row
  returning kept.n::int as place`

/** How much evidence that moved nothing the ledger keeps about each, counted up to `most`. */
const countUnmoved = (id: Fragment) => sql<{ about: readonly Subject[]; most: number }, KeptCount>`
  select given.*, unmoved.kept
  from ${{ rows: 'about', columns: { merchantId: 'text', id: 'text' } }} given
  cross join lateral (
    select count(*)::int as kept from (
      select from history
      where history.merchant_id = given.merchant_id and history.${id} = given.id and version is null
      limit ${'most'}
    ) few
  ) unmoved`

export const countRepeatedOfPayouts = countRepeated({ fragment: 'payout_id' })
export const countRepeatedOfPayins = countRepeated({ fragment: 'payin_id' })
export const countUnmovedOfPayouts = countUnmoved({ fragment: 'payout_id' })
export const countUnmovedOfPayins = countUnmoved({ fragment: 'payin_id' })

/** `headers`: JSON text. Names the payout that the message is about, if there is one. */
type MessageRow = Omit<OutboxRow, 'about' | 'headers'> & {
  headers: string | null
  merchantId: string | null
  payoutId: string | null
}

/** A row of the outbox has about as many bytes at most, or one larger message; a dead letter, which may be sealed anew, is alone. */
const PARCEL_BYTES: Fragment = { fragment: '65536' }

/**
 * The messages keep their order in each topic: rows get their positions in that order. A transaction has an xid before it takes a
 * position, because the relay's marks depend on xids (docs/decisions/0002). A message without headers gets the traceparent of the
 * payout's command.
 */
export const appendOutbox = sql<{ messages: readonly MessageRow[] }>`
  insert into outbox (shard, topic, keys, event_ids, types, contents, headers, bytes)
  select shard, topic, array_agg(key order by n), array_agg(event_id order by n), array_agg(type order by n),
    array_agg(value order by n), array_agg(headers order by n), sum(octet_length(value))
  from (
    select shard, topic, key, event_id, type, value, n,
      coalesce(headers, (select jsonb_build_object('traceparent', traceparent) from payout_commands c
                         where (c.merchant_id, c.payout_id) = (o.merchant_id, o.payout_id) and traceparent is not null))
        as headers,
      sum(case when type = 'in.payoutd.DeadLetter' then greatest(${PARCEL_BYTES}, octet_length(value)) else octet_length(value) end)
        over (partition by shard, topic order by n) / ${PARCEL_BYTES} as parcel
    from ${{
      rows: 'messages',
      columns: {
        ...{ shard: 'smallint', topic: 'text', key: 'text', eventId: 'uuid', type: 'text', value: 'bytea' },
        ...{ headers: 'jsonb', merchantId: 'text', payoutId: 'text' },
      },
      ordered: true,
    }} o
  ) o, pg_current_xact_id()
  group by shard, topic, parcel
  order by min(n)`

/** Writes everything about a payout's transition in one statement, and so in one round trip. */
export const storeTransitions = sql<{
  payouts: readonly DatedPayout[]
  history: readonly HistoryRow[]
  messages: readonly MessageRow[]
}>`
  with moved as (${updatePayouts}), recorded as (${insertHistory})
  ${appendOutbox}`
