import { randomUUID } from 'node:crypto'

/**
 * A temporary name for the file that becomes `path` once it is whole. The name is unique: if two processes write at
 * once, each renames its own file.
 */
export const partialOf = (path: string): string => `${path}.${randomUUID().slice(0, 8)}.partial`
