import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AvroSchema } from './avro.ts'

/** A record schema, and the text of its file. */
export type SchemaFile = { schema: AvroSchema; text: string }

/** Every record schema in a folder of .avsc files, by its name without the namespace. */
export function readSchemas(folder: string): Map<string, SchemaFile> {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.avsc'))
    .map((file) => readFileSync(join(folder, file), 'utf8'))
    .map((text): SchemaFile => ({ text, schema: JSON.parse(text) as AvroSchema }))
  return new Map(files.map((file) => [file.schema.name, file]))
}
