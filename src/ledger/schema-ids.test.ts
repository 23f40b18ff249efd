import assert from 'node:assert/strict'
import { test } from 'node:test'
import avro from 'avsc'
import { freshDatabase } from '../../test/database.ts'
import { type Logger, silentLogger } from '../platform/log.ts'
import { openCodec, registerSchemas } from '../platform/registry/codec.ts'
import {
  connectRegistry,
  type Registry,
  RegistryAway,
  type SchemaSubject,
} from '../platform/registry/registry.ts'
import { moveTopics } from './own-topics.ts'
import { withNotedIds } from './schema-ids.ts'

const subjectOf = (name: string, doc = ''): SchemaSubject => {
  const schema = { type: 'record' as const, name, namespace: 'test', doc, fields: [] }
  return { topic: 'topic', schema, text: JSON.stringify(schema), compatibility: 'FULL_TRANSITIVE' }
}
const SUBJECTS = [subjectOf('One'), subjectOf('Two')]

/** A registry that gives ids from `first` on. */
function registryFrom(first: number): Registry {
  const texts: string[] = []
  const lookUp = async ({ text }: SchemaSubject) =>
    texts.includes(text) ? first + texts.indexOf(text) : null
  return {
    lookUp,
    async register(subject) {
      return (await lookUp(subject)) ?? first + texts.push(subject.text) - 1
    },
    writerSchema: async () => 'unknown',
  }
}

/** Fails each request with this error. */
const failing = (error: Error): Registry & { asked: number } => ({
  asked: 0,
  ...connectRegistry({ url: 'http://127.0.0.1:9' }),
  async lookUp() {
    this.asked++
    throw error
  },
})

test('a registry that is away is asked once and told once, and the noted ids are used', async (t) => {
  const { db } = await freshDatabase(t)
  const registry = registryFrom(5)
  await registerSchemas(registry, SUBJECTS)
  await openCodec(withNotedIds(registry, db, silentLogger), SUBJECTS)

  const warnings: string[] = []
  const log = { ...silentLogger, warn: (_: object, text: string) => warnings.push(text) } as unknown as Logger
  const away = failing(new RegistryAway('away'))
  const noting = withNotedIds(away, db, log)
  const ids = [
    await noting.lookUp(SUBJECTS[0] as SchemaSubject),
    await noting.lookUp(SUBJECTS[1] as SchemaSubject),
  ]
  assert.deepEqual([ids, away.asked, warnings.length], [[5, 6], 1, 1])

  // Another version of payoutd has another schema.
  await assert.rejects(openCodec(withNotedIds(away, db, silentLogger), [subjectOf('One', 'changed')]), /away/)
})

test('a registry that refuses is not one that is away', async (t) => {
  const { db } = await freshDatabase(t)
  await registerSchemas(withNotedIds(registryFrom(5), db, silentLogger), SUBJECTS)
  const refusing = withNotedIds(failing(new Error('HTTP 401')), db, silentLogger)
  await assert.rejects(openCodec(refusing, SUBJECTS), /401/)
})

test('a registry that lost its data is refused, and gets no schema anew, until the topics are moved', async (t) => {
  const { db } = await freshDatabase(t)
  const register = (registry: Registry) => registerSchemas(withNotedIds(registry, db, silentLogger), SUBJECTS)
  const open = (registry: Registry) => openCodec(withNotedIds(registry, db, silentLogger), SUBJECTS)
  await register(registryFrom(5))

  const empty = registryFrom(12)
  const lost =
    /^Error: .* of topic-test.One under the id 5, and no longer has it\. Nothing was done: .*--move-topics$/
  await assert.rejects(open(empty), lost)
  await assert.rejects(register(empty), lost)

  await registerSchemas(empty, SUBJECTS)
  await assert.rejects(
    open(empty),
    /^Error: .* of topic-test.One under the id 5, and now has it under 12\. Nothing was done: /,
  )

  await moveTopics(db, '', { by: 'asha', reason: 'a new Kafka and a new registry' })
  await open(empty)
})

test('a subject that somebody deleted is registered again by a migration, which a start asks for', async (t) => {
  const { db } = await freshDatabase(t)
  const known = registryFrom(5)
  await registerSchemas(withNotedIds(known, db, silentLogger), SUBJECTS)
  let isDeleted = true
  const registry: Registry = {
    lookUp: async (subject) => (isDeleted ? null : known.lookUp(subject)),
    async register(subject) {
      isDeleted = false
      return known.register(subject)
    },
    writerSchema: async (id, names) =>
      id === 5 && names.has('topic-test.One') ? avro.Type.forSchema(SUBJECTS[0]?.schema as never) : 'unknown',
  }
  await assert.rejects(
    openCodec(withNotedIds(registry, db, silentLogger), SUBJECTS.slice(0, 1)),
    /payoutd migrate/,
  )
  await registerSchemas(withNotedIds(registry, db, silentLogger), SUBJECTS.slice(0, 1))
  await openCodec(withNotedIds(registry, db, silentLogger), SUBJECTS.slice(0, 1))
})
