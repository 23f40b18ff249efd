import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
/** Every record schema in a folder of .avsc files, by its name without the namespace. */
export function readSchemas(folder) {
    const files = readdirSync(folder)
        .filter((file) => file.endsWith('.avsc'))
        .map((file) => readFileSync(join(folder, file), 'utf8'))
        .map((text) => ({ text, schema: JSON.parse(text) }));
    return new Map(files.map((file) => [file.schema.name, file]));
}
