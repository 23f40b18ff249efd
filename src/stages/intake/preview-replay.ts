import type { Fault } from '../../domain/fault.ts'
import { beneficiaryIdHash, type PayoutKey, payeeHash } from '../../domain/identifiers.ts'
import type { State } from '../../domain/payout/states.ts'
import { keyOf, lockPayouts } from '../../ledger/ledger.ts'
import { mapKey } from '../../platform/map-key.ts'
import { blame, sql, type Transaction } from '../../platform/postgres/postgres.ts'
import { storeCancels } from './early-cancels.ts'
import type { IntakeDeps } from './intake.ts'
import type { IntakeKeys } from './new-payout.ts'
import {
  type CancelRequest,
  merchantOf,
  type ParsedCommand,
  type PayoutRequest,
  parseCommand,
} from './parse-command.ts'
import { related } from './related.ts'
import { storeCommands } from './store-commands.ts'
import { takeTurn } from './take-turn.ts'

export type PreviewDeps = Pick<IntakeDeps, 'ledger' | 'terms' | 'keys' | 'decode'>

/**
 * The outcome that a record would have. `dead`: it is dead-lettered again. `repeat`: the ledger has the same already.
 * `contradicts`: its id stands for other content, so it is an anomaly. `cancel`: `to` is the payout's state afterwards; null:
 * the payout is unknown, and is cancelled if its request comes.
 */
export type Expected =
  | { kind: 'dead'; reason: string; detail: string | null }
  | ({ kind: 'accepted'; state: State; reason: string | null } & PayoutKey)
  | ({ kind: 'rejected'; faults: Fault[] } & PayoutKey)
  | ({ kind: 'repeat' | 'contradicts' } & PayoutKey)
  | ({ kind: 'cancel'; to: State | null } & PayoutKey)
  | { kind: 'batch'; batchId: string }

/** Not an error: rolls back a transaction of the preview, so that nothing of it stays. */
class Tried extends Error {
  readonly expected: Expected[]
  constructor(expected: Expected[]) {
    super()
    this.expected = expected
  }
}

const mark = sql<object>`savepoint tried`
const backToMark = sql<object>`rollback to savepoint tried`

/** Intake waits for the turns of a part: it has about as many commands as a transaction of intake. */
const PART = 500

/**
 * What intake would do with these values if they came now, in this order. It stores each as intake does, part by part, and rolls
 * every part back. What is about the same payout, bank account or beneficiary is in one part, up to PART of it: only there values
 * are compared with each other. Throws when the registry or the database does not answer.
 */
export async function previewReplay(
  values: readonly (Buffer | null)[],
  deps: PreviewDeps,
): Promise<Expected[]> {
  const letters: Letter[] = []
  for (const [place, value] of values.entries()) {
    const decoded = await deps.decode(value)
    const detail = decoded.kind === 'undecodable' ? decoded.detail : null
    letters.push({ place, detail, parsed: parseCommand(decoded, deps.terms) })
  }
  const expected = new Map<number, Expected>()
  for (const part of inParts(letters, deps.keys))
    for (const [i, each] of (await tryPart(part, deps)).entries())
      expected.set((part[i] as Letter).place, each)
  return letters.map(({ place }) => expected.get(place) as Expected)
}

/** `place`: among the values. `detail`: why it cannot be decoded. */
type Letter = { place: number; detail: string | null; parsed: ParsedCommand }

/** Letters that may depend on each other stay together, and in their order. */
function inParts(letters: readonly Letter[], keys: IntakeKeys): Letter[][] {
  const parts: Letter[][] = []
  for (const group of related(letters, ({ parsed }) => subjectsOf(parsed, keys))) {
    for (let from = 0; from < group.length; from += PART) {
      const some = group.slice(from, from + PART)
      const last = parts.at(-1)
      if (last && last.length + some.length <= PART) last.push(...some)
      else parts.push(some)
    }
  }
  return parts.map((part) => part.sort((one, other) => one.place - other.place))
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

async function tryPart(part: readonly Letter[], deps: PreviewDeps): Promise<Expected[]> {
  try {
    return await deps.ledger.db.transaction('preview of commands', async (tx) => {
      await takeTurn(
        tx,
        part.map(({ parsed }) => merchantOf({ parsed })),
      )
      const expected: Expected[] = []
      for (const some of inSets(part)) expected.push(...(await trySet(tx, some, deps)))
      throw new Tried(expected)
    })
  } catch (error) {
    if (error instanceof Tried) return error.expected
    throw error
  }
}

/** Requests that follow each other are stored together, as by intake, and everything else alone. */
function inSets(part: readonly Letter[]): Letter[][] {
  const sets: Letter[][] = []
  for (const letter of part) {
    const last = sets.at(-1)
    if (letter.parsed.kind === 'payout' && last?.[0]?.parsed.kind === 'payout') last.push(letter)
    else sets.push([letter])
  }
  return sets
}

/** If the database refuses something of a set, tries halves of it down to the single letter. */
async function trySet(tx: Transaction, some: readonly Letter[], deps: PreviewDeps): Promise<Expected[]> {
  await tx.run(mark, {})
  try {
    return await tryOut(tx, some, deps)
  } catch (error) {
    if (blame(error) === 'database') throw error
    await tx.run(backToMark, {})
    if (some.length === 1) return [{ kind: 'dead', reason: 'refused-by-database', detail: null }]
    const middle = Math.ceil(some.length / 2)
    const first = await trySet(tx, some.slice(0, middle), deps)
    return [...first, ...(await trySet(tx, some.slice(middle), deps))]
  }
}

async function tryOut(tx: Transaction, some: readonly Letter[], deps: PreviewDeps): Promise<Expected[]> {
  const requests = some.flatMap(({ parsed }) => (parsed.kind === 'payout' ? [parsed] : []))
  if (requests.length > 0) return tryPayouts(tx, requests, deps)
  const expected: Expected[] = []
  for (const { parsed, detail } of some) {
    if (parsed.kind === 'dead') expected.push({ ...parsed, detail })
    else if (parsed.kind === 'batch') expected.push({ kind: 'batch', batchId: parsed.declaration.batchId })
    else if (parsed.kind === 'cancel') expected.push(await tryCancel(tx, parsed, deps))
  }
  return expected
}

async function tryCancel(tx: Transaction, cancel: CancelRequest, { ledger }: PreviewDeps): Promise<Expected> {
  const { merchantId, payoutId } = cancel
  await storeCancels(tx, ledger, [cancel])
  const [payout] = await lockPayouts(tx, [cancel])
  return { kind: 'cancel', merchantId, payoutId, to: payout?.state ?? null }
}

async function tryPayouts(
  tx: Transaction,
  requests: readonly PayoutRequest[],
  { ledger, keys }: PreviewDeps,
): Promise<Expected[]> {
  const { fresh, contradicting } = await storeCommands(tx, ledger, keys, requests)
  const stored = new Map(fresh.map((payout) => [keyOf(payout), payout]))
  const contradicts = new Set(contradicting)
  return requests.map(({ command, faults }): Expected => {
    const key = { merchantId: command.merchantId, payoutId: command.payoutId }
    if (contradicts.has(command)) return { kind: 'contradicts', ...key }
    const payout = stored.get(keyOf(key))
    if (!payout) return { kind: 'repeat', ...key }
    stored.delete(keyOf(key))
    if (payout.state === 'rejected') return { kind: 'rejected', ...key, faults }
    return { kind: 'accepted', ...key, state: payout.state, reason: payout.reason }
  })
}
