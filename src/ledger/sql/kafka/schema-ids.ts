import { sql } from '../../../platform/postgres/postgres.ts'

type NotedSchema = { subject: string; hash: Buffer }

/** No row: none was noted. */
export const schemaId = sql<NotedSchema, { id: number }>`
  select id from schema_ids where subject = ${'subject'} and schema_hash = ${'hash'}`

export const putSchemaId = sql<NotedSchema & { id: number }>`
  insert into schema_ids (subject, schema_hash, id) values (${'subject'}, ${'hash'}, ${'id'}) on conflict do nothing`

export const forgetSchemaIds = sql<object>`delete from schema_ids`
