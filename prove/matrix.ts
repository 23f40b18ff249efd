import type { Discrepancy } from '../devkit/oracle/check.ts'
import type { Logger } from '../src/platform/log.ts'
import type { Servers, Verdict } from './world/world.ts'

/** What a section of the matrix works with. */
export type Bench = {
  stack: Servers
  /** The folder for the worlds' files. */
  dir: string
  log: Logger
  /** The short form for CI: fewer runs of the same kinds. */
  quick: boolean
  /** How long the soak lasts; an hour by default. */
  soakMinutes?: number | undefined
  signal: AbortSignal
  /** Shows what happens now; the next call replaces it. */
  tell: (what: string) => void
}

/** One line of docs/proof.md. */
export type Row = {
  section: string
  name: string
  runs: number
  faults: number
  payouts: number
  /** Whether its gateway pays one number as often as asked: at any other gateway nothing can be paid twice. */
  paysTwice: boolean
  paidTwice: number
  lost: number
  lied: number
  /** Every other mismatch. */
  other: number
  /** Payouts in review at the end. */
  inReview: number
  /** What else a reader should know. */
  note: string
  /** Every mismatch as text; raw results only. */
  discrepancies: string[]
  /** For a run without a safeguard: the kinds of discrepancy that showed it; empty: none did. */
  caughtBy?: string[]
}

export type Section = (bench: Bench) => AsyncGenerator<Row>

const LOST = new Set(['no-end', 'not-in-ledger', 'unknown-order', 'row-lost'])
const LIED = new Set([
  'paid-here-only',
  'paid-there-only',
  'two-ends',
  'without-evidence',
  'not-ended-there',
  'wrong-payee',
])

/** A line from what the oracle found in a world. `faults`: how many were injected in how many `runs`. */
export function rowOf(
  {
    section,
    name,
    runs,
    faults,
    note = '',
  }: Pick<Row, 'section' | 'name' | 'runs' | 'faults'> & { note?: string },
  { payouts, discrepancies, inReview, paysTwice }: Omit<Verdict, 'paid' | 'anomalies'>,
): Row {
  const count = (kinds: ReadonlySet<string>) => discrepancies.filter(({ kind }) => kinds.has(kind)).length
  const paidTwice = count(new Set(['paid-twice']))
  const [lost, lied] = [count(LOST), count(LIED)]
  const other = discrepancies.length - paidTwice - lost - lied
  return {
    ...{ section, name, runs, faults, payouts, paysTwice, paidTwice, lost, lied, other, inReview, note },
    discrepancies: discrepancies.map(inWords),
  }
}

/** Adds to the row what else was wrong, as text: everything that the oracle cannot know. */
export const withWrong = (row: Row, wrong: readonly string[]): Row => ({
  ...row,
  other: row.other + wrong.length,
  discrepancies: [...row.discrepancies, ...wrong],
})

export const inWords = ({ invariant, kind, who, detail }: Discrepancy): string =>
  `${kind}${invariant === null ? '' : ` (invariant ${invariant})`}: ${who} ${detail}`

/** Whether the row is as it must be: nothing wrong, or, without a safeguard, something. */
export const isRight = ({ paidTwice, lost, lied, other, caughtBy }: Row): boolean =>
  caughtBy ? caughtBy.length > 0 : paidTwice + lost + lied + other === 0
