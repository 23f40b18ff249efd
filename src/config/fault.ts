/**
 * The fault of a setting, in words that follow its name: what it is and what it must be. For a secret it shows only whether it is
 * set; for anything else it hides what precedes an @: a user and a password.
 */
export function faultOf(value: unknown, wanted: string, { secret }: { secret: boolean }): string {
  if (value === undefined) return `is not set: ${wanted}`
  return `is ${secret ? 'set (not shown)' : shown(value)}: ${wanted}`
}

const shown = (value: unknown): string =>
  JSON.stringify(typeof value === 'string' ? value.replace(/^.*@/s, '…@') : value)
