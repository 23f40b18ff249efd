/**
 * Joins several parts into one key for in-memory maps. Different lists of parts always give different keys: `a:b`
 * with `c` is not `a` with `b:c`.
 */
export const mapKey = (...parts: readonly (string | number | bigint)[]): string =>
  JSON.stringify(parts.map((part) => (typeof part === 'bigint' ? String(part) : part)))
