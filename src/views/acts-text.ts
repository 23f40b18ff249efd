import { formatTime } from '../domain/times.ts'
import type { StoredAct } from '../ledger/sql/acts.ts'

/** The text names so many subjects; `--json` has all. */
const NAMED = 3

/** Two lines for each act: what was done to what, then who did it, from where and why. */
export const actsText = (acts: readonly StoredAct[]): string => acts.map(actText).join('\n')

function actText(act: StoredAct): string {
  const { at, command, merchantId, subjects, by, osUser, host, databaseRole, reason } = act
  const about = [merchantId, ...named(subjects)].filter((each) => each !== null).join(' ')
  return [
    `  ${formatTime(at)}  ${command}${about === '' ? '' : `: ${about}`}`,
    `    by ${by} (${osUser} at ${host}, database role ${databaseRole}): ${reason}`,
  ].join('\n')
}

function named(subjects: readonly string[]): string[] {
  const more = subjects.length - NAMED
  return more > 0 ? [...subjects.slice(0, NAMED), `and ${more} more`] : [...subjects]
}
