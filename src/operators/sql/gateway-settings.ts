import type { Instant } from '../../domain/instant.ts'
import type { SentAgain } from '../../domain/payout/send-again.ts'
import type { Account } from '../../gateway/dialect/account.ts'
import { isOpen } from '../../ledger/sql/columns.ts'
import { sql } from '../../platform/postgres/postgres.ts'

type SettingsOf = { merchantId: string }

/** Makes changes by settings with accounts of one mchId, for whichever merchant, take turns until their transactions end. */
export const takeAccountTurns = sql<{ mchIds: string[] }>`
  select pg_advisory_xact_lock(hashtextextended('gateway account ' || mch_id, 0))
  from (select distinct unnest(${'mchIds'}::text[]) collate "C" as mch_id order by 1) accounts`

/** The other merchants for whom an account is or ever was in force, also at another address with the same key. */
export const othersAt = sql<
  SettingsOf & Pick<Account, 'accountId' | 'mchId' | 'keyFingerprint'>,
  SettingsOf & { isInForce: boolean }
>`
  select g.merchant_id, bool_or(m.merchant_id is not null) as is_in_force
  from gateway_settings g left join merchants m using (merchant_id, settings_hash)
  where (account_id = ${'accountId'} or (mch_id = ${'mchId'} and key_fingerprint = ${'keyFingerprint'}))
    and merchant_id <> ${'merchantId'}
  group by 1
  order by 1`

/** When these settings were put in force, the latest time; no row: the ledger has no such act. */
export const inForceSince = sql<SettingsOf & { settingsHash: string }, { since: Instant }>`
  select at as since from operator_acts
  where merchant_id = ${'merchantId'} and after ->> 'settingsHash' = ${'settingsHash'}
  order by act_id desc limit 1`

/** Blocks every claim of the merchant. '' as hash: no settings are in force yet. */
export const lockInForce = sql<SettingsOf, { settingsHash: string }>`
  select settings_hash from merchants where merchant_id = ${'merchantId'} for update`

/** Makes the merchant's row if there is none. `feeEstimate` is only its initial value. */
export const openMerchant = sql<SettingsOf & { feeEstimate: bigint }>`
  insert into merchants (merchant_id, settings_hash, fee_estimate)
  values (${'merchantId'}, '', ${'feeEstimate'})
  on conflict (merchant_id) do nothing`

/** Each start begins with the estimate of its settings and learns fees anew, unless somebody holds the row. */
export const beginFees = sql<SettingsOf & { feeEstimate: bigint }>`
  update merchants set fee_estimate = ${'feeEstimate'}, fee_share = null
  where merchant_id = any (array(
    select merchant_id from merchants
    where merchant_id = ${'merchantId'} and (fee_estimate <> ${'feeEstimate'} or fee_share is not null)
    for no key update skip locked
  ))`

/** A row, if settings were ever in force. */
export const isKnown = sql<SettingsOf, { known: true }>`
  select true as known from merchants where merchant_id = ${'merchantId'} and settings_hash <> ''`

/** A row, if the ledger has no payouts, and the merchant never had settings in force. */
export const isBeginning = sql<SettingsOf, { beginning: true }>`
  select true as beginning
  where not exists (select from payouts)
    and not exists (select from merchants where merchant_id = ${'merchantId'} and settings_hash <> '')`

/** For a ledger that has no payouts yet: what is published later may be its own. */
export const notePredecessor = sql<{ before: string }>`
  update ledger_server set predecessor = coalesce(predecessor, ${'before'})
  where not exists (select from payouts)`

/** Why another ledger may have sent a merchant's payouts without this one's knowledge; no row: nothing suggests that. */
export const doubtOfNewcomers = sql<SettingsOf, { reason: string; oneStep: boolean }>`
  select reason, one_step from (
    (select predecessor as reason, false as one_step from ledger_server where predecessor is not null)
    union all
    (select merchant_id || ' is fenced as well: ' || recovering_reason, recovering_one_step from merchants
     where recovering_since is not null and merchant_id <> ${'merchantId'}
     order by recovering_since, merchant_id limit 1)
  ) doubts
  limit 1`

/** A merchant that is fenced because another one is, is fenced for the same step of the server's history. */
export const noteOneStep = sql<SettingsOf & { reason: string }>`
  update merchants set recovering_one_step = true
  where merchant_id = ${'merchantId'} and recovering_reason = ${'reason'}`

/**
 * Sending starts with the canary, an unknown balance and no presence check. Answers that a recovery received by other settings no
 * longer count.
 */
export const putInForce = sql<SettingsOf & { settingsHash: string }>`
  update merchants
  set settings_hash = ${'settingsHash'}, learned_rate = null, warm_up = 0, consecutive_failures = 0, refusals = 0, circuit_opened = 0, circuit_open_until = null,
      circuit_reason = null, available = null, recovery_round = recovery_round + 1
  where merchant_id = ${'merchantId'}`

/** Every account that was ever in force, with each of its settings, the oldest first. */
export const settingsSeen = sql<SettingsOf, Account>`
  select account_id, base_url, mch_id, key_fingerprint, dialect_name, settings_hash
  from gateway_settings where merchant_id = ${'merchantId'} order by first_seen, settings_hash`

export const keepSettings = sql<SettingsOf & Account>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values (${'merchantId'}, ${'settingsHash'}, ${'accountId'}, ${'baseUrl'}, ${'mchId'}, ${'keyFingerprint'},
          ${'dialectName'})
  on conflict do nothing`

/** Open payouts that were attempted before the ledger kept the account. */
export const placeAttempted = sql<SettingsOf & { accountId: string }>`
  update payouts set account_id = ${'accountId'}, doubted = true
  where merchant_id = ${'merchantId'} and account_id is null and attempt > 0
    and ${isOpen}`

/** Payouts that rely on a promise of the gateway, by which one: they wait to be sent again, or for a refusal to be confirmed. */
export const onPromise = sql<SettingsOf, SentAgain & { count: number }>`
  select doubted, absence_confirmed, unpaid_codes, count(*)::int as count from payouts
  where merchant_id = ${'merchantId'} and ${isOpen} and attempt > 0
    and (state in ('held', 'queued') or (state = 'unknown' and reason in ('refused', 'later')))
  group by doubted, absence_confirmed, unpaid_codes`
