import { mixedAnswers } from '../src/ledger/mixed-answers.ts'
import { silentLogger } from '../src/platform/log.ts'
import { type Database, sql } from '../src/platform/postgres/postgres.ts'
import { ACCOUNT } from './ledger.ts'

const BASE_URL = 'https://gateway.example'
const addSettings = sql<{ accountId: string; settingsHash: string; baseUrl: string }>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values ('acme', ${'settingsHash'}, ${'accountId'}, ${'baseUrl'}, '', '', '')
  on conflict (merchant_id, settings_hash) do update set base_url = excluded.base_url`
const noLonger = sql<object>`update mixed_answers set mixed_until = now()`
const longAgo = sql<object>`delete from mixed_answers`

/** For a minute the gateway of an account of acme mixes answers up, as another merchant found out. */
export async function mixUp(db: Database, account = ACCOUNT): Promise<void> {
  await db.run(addSettings, { ...account, baseUrl: BASE_URL })
  await mixedAnswers('bolt', db, silentLogger)({ baseUrl: BASE_URL, orderNo: 'P7' }, 60_000)
}

/** The minute has just ended. */
export const inOrderAgain = (db: Database): Promise<unknown> => db.run(noLonger, {})

export const neverMixedUp = (db: Database): Promise<unknown> => db.run(longAgo, {})
