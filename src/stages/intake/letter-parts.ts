import { beneficiaryIdHash, payeeHash } from '../../domain/identifiers.ts'
import { keyOf } from '../../ledger/ledger.ts'
import { mapKey } from '../../platform/map-key.ts'
import type { IntakeKeys } from './new-payout.ts'
import type { ParsedCommand } from './parse-command.ts'
import { related } from './related.ts'

/** Intake waits for the turns of a part: it has about as many commands as a transaction of intake. */
const PART = 500
/** So many times may requests and cancellations of one group follow each other in a part: they are tried one after the other. */
const RUNS = 10

/** `place`: among the values. `detail`: why it cannot be decoded. */
export type Letter = { place: number; detail: string | null; parsed: ParsedCommand }

/** Letters of one kind that follow each other in a group. */
type LetterRun = Letter[]
/** What is tried in one transaction: groups that do not depend on each other, each as its runs. */
export type Part = LetterRun[][]

/** Letters that may depend on each other stay together, and in their order. */
export function inParts(letters: readonly Letter[], keys: IntakeKeys): Part[] {
  const parts: { groups: Part; size: number }[] = []
  for (const group of related(letters, ({ parsed }) => subjectsOf(parsed, keys))) {
    const runs = inRuns(group.sort((one, other) => one.place - other.place))
    for (const some of cut(runs)) {
      const size = some.flat().length
      const last = parts.at(-1)
      if (last && last.size + size <= PART) {
        last.groups.push(some)
        last.size += size
      } else parts.push({ groups: [some], size })
    }
  }
  return parts.map(({ groups }) => groups)
}

function inRuns(group: readonly Letter[]): LetterRun[] {
  const runs: LetterRun[] = []
  for (const letter of group) {
    const last = runs.at(-1)
    if (last?.[0]?.parsed.kind === letter.parsed.kind && last.length < PART) last.push(letter)
    else runs.push([letter])
  }
  return runs
}

/** In pieces of one group that fit in a part. */
function cut(runs: readonly LetterRun[]): LetterRun[][] {
  const pieces: LetterRun[][] = []
  for (const run of runs) {
    const last = pieces.at(-1)
    const fits = last && last.length < RUNS && last.flat().length + run.length <= PART
    if (fits) last.push(run)
    else pieces.push([run])
  }
  return pieces
}

/** What intake looks for others by: the payoutId, and for a request the bank account and the beneficiary, too. */
function subjectsOf(parsed: ParsedCommand, { fingerprint }: IntakeKeys): string[] {
  if (parsed.kind === 'cancel') return [mapKey('payout', keyOf(parsed))]
  if (parsed.kind !== 'payout') return []
  const { command } = parsed
  const of = (what: string, hash: Buffer | null) =>
    hash ? [mapKey(what, command.merchantId, hash.toString('base64'))] : []
  return [
    mapKey('payout', keyOf(command)),
    ...of('account', payeeHash(command, fingerprint)),
    ...of('beneficiary', beneficiaryIdHash(command, fingerprint)),
  ]
}

/** What is stored at once: of all groups, their first runs of one kind, then their second ones, and so on. */
export function inSets(part: Part): Letter[][] {
  const most = Math.max(...part.map((runs) => runs.length))
  return Array.from({ length: most }, (_, i) => part.flatMap((runs) => runs[i] ?? [])).flatMap((letters) => [
    ...Map.groupBy(letters, ({ parsed }) => parsed.kind).values(),
  ])
}
