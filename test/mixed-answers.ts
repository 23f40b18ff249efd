import { mixedAnswers } from '../src/ledger/mixed-answers.ts'
import { silentLogger } from '../src/platform/log.ts'
import { type Database, sql } from '../src/platform/postgres/postgres.ts'
import { ACCOUNT } from './ledger.ts'

const forMinute = sql<object>`update mixed_answers set mixed_until = now() + interval '1 minute'`
const noLonger = sql<object>`update mixed_answers set mixed_until = now()`
const longAgo = sql<object>`update mixed_answers set mixed_until = mixed_until - interval '1 day'`

/** A gateway, by default that of ACCOUNT, mixed an answer about this order up, as another merchant found out. */
export const mixUpOnce = (db: Database, orderNo: string, { baseUrl } = ACCOUNT): Promise<void> =>
  mixedAnswers('bolt', db, silentLogger)({ baseUrl, orderNo })

/** It goes on to mix answers up for a minute. */
export async function mixUp(db: Database, account = ACCOUNT): Promise<void> {
  await mixUpOnce(db, 'P7', account)
  await db.run(forMinute, {})
}

/** The minute has just ended. */
export const inOrderAgain = (db: Database): Promise<unknown> => db.run(noLonger, {})

/** It ended before anything of the test began. */
export const inOrderForLong = (db: Database): Promise<unknown> => db.run(longAgo, {})
