import { systemIds } from './ids.ts'

/**
 * The name of what becomes the file at `path` once it is whole. Nobody else has it: where two write at once, each renames
 * what it wrote itself.
 */
export const partialOf = (path: string): string => `${path}.${systemIds.uuid().slice(0, 8)}.partial`
