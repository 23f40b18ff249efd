import type { Decided } from '../domain/payout/resolve.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { recordAct } from './acts.ts'
import { ownTopics, putOwnTopics } from './sql/kafka/own-topics.ts'
import { forgetSchemaIds } from './sql/kafka/schema-ids.ts'

/**
 * Throws an ExpectedFailure if the ledger has topics with another prefix: what this process published would go to another
 * installation, and nobody would publish it again.
 */
export async function demandOwnTopics(db: Database, prefix: string): Promise<void> {
  const other = await othersTopics(db, prefix)
  if (other !== null) throw new ExpectedFailure(`${other}. Nothing was done: ${MOVE_TOPICS}`)
}

/** The same for whoever publishes, which notes the prefix if the ledger has none yet. */
export async function noteOwnTopics(db: Database, prefix: string): Promise<void> {
  // A commit waits for a synchronous standby, so nothing is written where there is nothing to note.
  const [own] = await db.run(ownTopics, {})
  if (!own) await db.run(putOwnTopics, { prefix, isMoved: false })
  await demandOwnTopics(db, prefix)
}

/**
 * From now on the ledger's topics have this prefix, and their schemas the ids that the registry will give them. Records the act
 * first: nothing may be published there without it.
 */
export async function moveTopics(db: Database, prefix: string, who: Decided): Promise<void> {
  const [own] = await db.run(ownTopics, {})
  const change = { before: own ? { prefix: own.prefix } : null, after: { prefix } }
  await recordAct(db, { command: 'migrate --move-topics', ...who, merchantId: null, subjects: [], ...change })
  await db.run(putOwnTopics, { prefix, isMoved: true })
  await db.run(forgetSchemaIds, {})
}

/** How the prefix of the ledger's own topics differs from this one, in words; null: it does not, or there is none yet. */
export async function othersTopics(db: Database, prefix: string): Promise<string | null> {
  const [own] = await db.run(ownTopics, {})
  if (!own || own.prefix === prefix) return null
  return `the topics of this ledger ${inWords(own.prefix)}, but TOPIC_PREFIX is "${prefix}"`
}

/** What to do about it. */
export const MOVE_TOPICS =
  'use the settings of the installation that this database belongs to, or if you mean to move it to other topics, run payoutd migrate --move-topics'

const inWords = (prefix: string): string => (prefix === '' ? 'have no prefix' : `begin with "${prefix}"`)
