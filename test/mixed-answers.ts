import { mixedAnswers } from '../src/ledger/mixed-answers.ts'
import { silentLogger } from '../src/platform/log.ts'
import { type Database, sql } from '../src/platform/postgres/postgres.ts'
import { ACCOUNT } from './ledger.ts'

const BASE_URL = 'https://gateway.example'
const addSettings = sql<{ accountId: string; settingsHash: string; baseUrl: string }>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values ('acme', ${'settingsHash'}, ${'accountId'}, ${'baseUrl'}, '', '', '')
  on conflict (merchant_id, settings_hash) do update set base_url = excluded.base_url`
const forMinute = sql<object>`update mixed_answers set mixed_until = now() + interval '1 minute'`
const noLonger = sql<object>`update mixed_answers set mixed_until = now()`
const longAgo = sql<object>`update mixed_answers set mixed_until = mixed_until - interval '1 day'`

/** The gateway of an account of acme mixed an answer up, as another merchant found out: that for this order. */
export async function mixUpOnce(db: Database, orderNo: string, account = ACCOUNT): Promise<void> {
  await db.run(addSettings, { ...account, baseUrl: BASE_URL })
  await mixedAnswers('bolt', db, silentLogger)({ baseUrl: BASE_URL, orderNo })
}

/** It goes on to mix answers up for a minute. */
export async function mixUp(db: Database, account = ACCOUNT): Promise<void> {
  await mixUpOnce(db, 'P7', account)
  await db.run(forMinute, {})
}

/** The minute has just ended. */
export const inOrderAgain = (db: Database): Promise<unknown> => db.run(noLonger, {})

/** It ended before anything of the test began. */
export const inOrderForLong = (db: Database): Promise<unknown> => db.run(longAgo, {})
