import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { registryUrl, unique } from '../kafka/kafka.fixture.ts'
import { fullName } from './avro.ts'
import { openCodec, registerSchemas } from './codec.ts'
import { connectRegistry, type SchemaSubject } from './registry.ts'
import { readSchemas } from './schemas.ts'

const FOLDER = join(import.meta.dirname, '../../../schemas')
const schemas = readSchemas(FOLDER)

type Field = { name: string; doc?: string; type: unknown; default?: unknown }

test('every field of every schema says what it means, with its unit', () => {
  for (const { schema } of schemas.values()) {
    for (const { name, doc = '', type } of schema.fields as Field[]) {
      assert.ok(doc.length > 0, `${schema.name}.${name}`)
      const kind = JSON.stringify(type)
      if (kind.includes('timestamp-millis')) assert.match(doc, /[Mm]illiseconds/, `${schema.name}.${name}`)
      else if (kind.includes('"long"')) assert.match(doc, /[Pp]aise/, `${schema.name}.${name}`)
    }
  }
})

test('every field that may be absent is null by default', () => {
  for (const { schema } of schemas.values()) {
    for (const field of schema.fields as Field[]) {
      if (!Array.isArray(field.type)) continue
      assert.equal(field.type[0], 'null', `${schema.name}.${field.name}`)
      assert.equal(field.default, null, `${schema.name}.${field.name}`)
    }
  }
})

test('a strict client finds every schema by the text of its file, unchanged or stripped', async () => {
  const registry = connectRegistry({ url: registryUrl() })
  for (const [name, { schema, text }] of schemas) {
    const topic = unique('topic')
    await registerSchemas(registry, [{ topic, schema, text, compatibility: 'FULL_TRANSITIVE' }])
    const file = readFileSync(join(FOLDER, `${name}.avsc`), 'utf8')
    // As Confluent's clients ask with `auto.register.schemas` false; Python's strips the text first.
    for (const asked of [file, file.trim()]) {
      const response = await fetch(`${registryUrl()}/subjects/${topic}-${fullName(schema)}`, {
        method: 'POST',
        headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
        body: JSON.stringify({ schema: asked }),
      })
      assert.equal(response.status, 200, name)
    }
  }
})

test('a schema not registered exactly as here is named, with what to do', async () => {
  const registry = connectRegistry({ url: registryUrl() })
  const topic = unique('topic')
  const subjects = [...schemas.values()].map(
    (file): SchemaSubject => ({ topic, ...file, compatibility: 'FULL_TRANSITIVE' }),
  )
  await registerSchemas(registry, subjects.slice(1))
  await assert.rejects(openCodec(registry, subjects), {
    message: `the schema registry lacks this version's schema of ${topic}-in.payoutd.PayinResult: run payoutd migrate, which registers it`,
  })
  assert.equal(await registry.lookUp(subjects[0] as SchemaSubject), null)
})
