import { sql } from '../../platform/postgres/postgres.ts'

/**
 * Makes people's decisions to pay payouts of one merchant take turns, each until its transaction ends: of two payouts that pay the
 * same, each decision sees what became of the other.
 */
export const takeSendTurn = sql<{ merchantId: string }>`
  select pg_advisory_xact_lock(hashtextextended('sends of ' || ${'merchantId'}, 0))`
