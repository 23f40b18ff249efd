import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { fullName } from './avro.ts'
import { openCodec } from './codec.ts'
import { registryUrl, unique } from './kafka.fixture.ts'
import { connectRegistry } from './registry.ts'
import { readSchemas } from './schemas.ts'

const schemas = readSchemas(join(import.meta.dirname, '../../../schemas'))

type Field = { name: string; doc?: string; type: unknown; default?: unknown }

test('every field of every schema says what it means, with its unit', () => {
  for (const schema of schemas.values()) {
    for (const { name, doc = '', type } of schema.fields as Field[]) {
      assert.ok(doc.length > 0, `${schema.name}.${name}`)
      const kind = JSON.stringify(type)
      if (kind.includes('timestamp-millis')) assert.match(doc, /[Mm]illiseconds/, `${schema.name}.${name}`)
      else if (kind.includes('"long"')) assert.match(doc, /[Pp]aise/, `${schema.name}.${name}`)
    }
  }
})

test('every field that may be absent is null by default', () => {
  for (const schema of schemas.values()) {
    for (const field of schema.fields as Field[]) {
      if (!Array.isArray(field.type)) continue
      assert.equal(field.type[0], 'null', `${schema.name}.${field.name}`)
      assert.equal(field.default, null, `${schema.name}.${field.name}`)
    }
  }
})

test('the registry accepts every schema', async () => {
  const subjects = [...schemas.values()].map(
    (schema) => ({ topic: unique('topic'), schema, compatibility: 'FULL_TRANSITIVE' }) as const,
  )
  const codec = await openCodec(connectRegistry({ url: registryUrl() }), subjects)
  for (const { topic, schema } of subjects)
    assert.equal(typeof codec.encoder(topic, fullName(schema)), 'function')
})
