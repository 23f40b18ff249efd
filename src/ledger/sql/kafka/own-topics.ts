import { sql } from '../../../platform/postgres/postgres.ts'

/** No row: none were noted. */
export const ownTopics = sql<object, { prefix: string }>`select prefix from ledger_topics`

/** Keeps those that were noted, unless they are moved. */
export const putOwnTopics = sql<{ prefix: string; isMoved: boolean }>`
  insert into ledger_topics (prefix) values (${'prefix'})
  on conflict (only_one) do update set prefix = excluded.prefix where ${'isMoved'}::bool`
