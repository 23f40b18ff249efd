import type { Discrepancy } from '../devkit/oracle/check.ts'
import type { Logger } from '../src/platform/log.ts'
import type { Servers, Verdict } from './world/world.ts'

/** What a section of the matrix works with. */
export type Bench = {
  stack: Servers
  /** Where worlds keep their files. */
  dir: string
  log: Logger
  /** The form of it that CI runs: fewer runs, the same kinds. */
  quick: boolean
  /** How long the soak goes on; an hour if not given. */
  soakMinutes?: number | undefined
  signal: AbortSignal
  /** Says what is going on now; the next call takes its place. */
  tell: (what: string) => void
}

/** One line of docs/proof.md. */
export type Row = {
  section: string
  name: string
  runs: number
  faults: number
  payouts: number
  /** Whether its gateway pays one number as often as it is asked to: elsewhere nothing can be paid twice. */
  paysTwice: boolean
  paidTwice: number
  lost: number
  lied: number
  /** Every other thing that did not fit. */
  other: number
  /** Payouts that waited for a person at the end. */
  inReview: number
  /** What else a reader should know. */
  note: string
  /** Of everything that did not fit, in words; raw results only. */
  discrepancies: string[]
  /** Where a safeguard was left out: the kinds of discrepancy that told so; empty: nothing did. */
  caughtBy?: string[]
}

export type Section = (bench: Bench) => AsyncGenerator<Row>

const LOST = new Set(['no-end', 'not-kept', 'unknown-order', 'row-lost'])
const LIED = new Set([
  'paid-here-only',
  'paid-there-only',
  'two-ends',
  'without-evidence',
  'not-settled-there',
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

/** The row with what else was wrong in it, in words: everything that the oracle cannot know. */
export const withWrong = (row: Row, wrong: readonly string[]): Row => ({
  ...row,
  other: row.other + wrong.length,
  discrepancies: [...row.discrepancies, ...wrong],
})

export const inWords = ({ invariant, kind, who, detail }: Discrepancy): string =>
  `${kind}${invariant === null ? '' : ` (invariant ${invariant})`}: ${who} ${detail}`

/** Whether it is as it must be: nothing wrong, or, without a safeguard, something. */
export const isRight = ({ paidTwice, lost, lied, other, caughtBy }: Row): boolean =>
  caughtBy ? caughtBy.length > 0 : paidTwice + lost + lied + other === 0
