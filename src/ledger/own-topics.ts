import { ExpectedFailure } from '../platform/expected-failure.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { ownTopics, putOwnTopics } from './sql/own-topics.ts'

/**
 * Notes the prefix of the ledger's own topics, once. Throws an ExpectedFailure if it has topics with another prefix: what this
 * process published would go to another installation, and nobody would publish it again.
 */
export async function demandOwnTopics(db: Database, prefix: string): Promise<void> {
  const other = await othersTopics(db, prefix)
  if (other === null) await db.run(putOwnTopics, { prefix, isMoved: false })
  else throw new ExpectedFailure(`${other}. Nothing was done: ${MOVE_TOPICS}`)
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
