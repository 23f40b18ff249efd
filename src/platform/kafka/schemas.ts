import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AvroSchema } from './avro.ts'

/** Every record schema in a folder of .avsc files, by its name without the namespace. */
export function readSchemas(folder: string): Map<string, AvroSchema> {
  const schemas = readdirSync(folder)
    .filter((file) => file.endsWith('.avsc'))
    .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as AvroSchema)
  return new Map(schemas.map((schema) => [schema.name, schema]))
}
