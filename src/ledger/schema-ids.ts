import { createHash } from 'node:crypto'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import type { Logger } from '../platform/log.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import {
  type Registry,
  RegistryAway,
  type SchemaSubject,
  subjectName,
} from '../platform/registry/registry.ts'
import { putSchemaId, schemaId } from './sql/kafka/schema-ids.ts'

/**
 * The registry, whose ids of the schemas that are looked up or registered the ledger notes. While the registry is away, looking up
 * finds the noted ids. Both throw an ExpectedFailure if the registry does not have a schema under its noted id any more.
 */
export function withNotedIds(registry: Registry, db: Database, log: Logger): Registry {
  let isAway = false
  const lookUp = async (subject: SchemaSubject): Promise<number | null> => {
    const noted = await notedId(db, subject)
    if (isAway && noted !== null) return noted
    const id = await registry.lookUp(subject).catch((error: unknown) => {
      if (noted === null || !(error instanceof RegistryAway)) throw error
      isAway = true
      log.warn({ err: error }, AWAY)
      return noted
    })
    const lost = await lostId(registry, subject, noted, id)
    if (lost !== null) throw new ExpectedFailure(`${lost}. Nothing was done: ${FIND_SCHEMAS}`)
    // A commit waits for a synchronous standby, so nothing is written where there is nothing to note.
    if (noted === null && id !== null) await note(db, subject, id)
    return id
  }
  return {
    ...registry,
    lookUp,
    async register(subject) {
      await lookUp(subject)
      const id = await registry.register(subject)
      const lost = await lostId(registry, subject, await notedId(db, subject), id)
      if (lost !== null) throw new ExpectedFailure(`${lost}: ${FIND_SCHEMAS}`)
      await note(db, subject, id)
      return id
    },
  }
}

const AWAY =
  'the schema registry does not answer: payoutd writes under the ids that the ledger noted, and asks the registry when it must read ' +
  'commands'

/** For each schema that the registry does not have under its noted id any more, how it has it, in words. */
export async function lostIds(
  registry: Registry,
  db: Database,
  subjects: readonly SchemaSubject[],
): Promise<string[]> {
  const found = await Promise.all(
    subjects.map(async (subject) =>
      lostId(registry, subject, await notedId(db, subject), await registry.lookUp(subject)),
    ),
  )
  return found.filter((lost) => lost !== null)
}

/** What to do about it. */
export const FIND_SCHEMAS =
  'messages written under the former id would be read wrongly. Correct SCHEMA_REGISTRY_URL, or restore the registry from its backup; if ' +
  'the topics are new, too, stop every payoutd and run payoutd migrate --move-topics'

async function lostId(
  registry: Registry,
  subject: SchemaSubject,
  noted: number | null,
  id: number | null,
): Promise<string | null> {
  if (noted === null || noted === id) return null
  const name = subjectName(subject)
  const had = `the schema registry had the schema of ${name} under the id ${noted}, and`
  if (id !== null) return `${had} now has it under ${id}`
  // Somebody deleted the subject: the registry still reads what was written, and gives the schema its id again.
  const isDeleted = typeof (await registry.writerSchema(noted, new Set([name]))) === 'object'
  return isDeleted ? null : `${had} no longer has it`
}

const keyOf = (subject: SchemaSubject) => ({
  subject: subjectName(subject),
  hash: createHash('sha256').update(subject.text).digest(),
})

async function notedId(db: Database, subject: SchemaSubject): Promise<number | null> {
  const [noted] = await db.run(schemaId, keyOf(subject))
  return noted?.id ?? null
}

const note = (db: Database, subject: SchemaSubject, id: number) =>
  db.run(putSchemaId, { ...keyOf(subject), id })
