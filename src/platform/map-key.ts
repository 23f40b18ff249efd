/**
 * One text for several parts, to find things in memory by. No two lists of parts have the same one, whatever stands in
 * them: `a:b` beside `c` is not `a` beside `b:c`.
 */
export const mapKey = (...parts: readonly (string | number | bigint)[]): string =>
  JSON.stringify(parts.map((part) => (typeof part === 'bigint' ? String(part) : part)))
