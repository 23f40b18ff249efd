import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** The clone's own folder, whatever the folder this was started in. */
export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..')
