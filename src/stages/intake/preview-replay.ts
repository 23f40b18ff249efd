import type { Fault } from '../../domain/fault.ts'
import { fileMark, type PayoutKey } from '../../domain/identifiers.ts'
import type { State } from '../../domain/payout/states.ts'
import { keyOf, lockPayouts } from '../../ledger/ledger.ts'
import { blame } from '../../platform/postgres/faults.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { storeCancels } from './early-cancels.ts'
import type { OwnFiles } from './holds.ts'
import type { IntakeDeps } from './intake.ts'
import { inParts, inSets, type Letter, type Part } from './letter-parts.ts'
import { type CancelRequest, merchantOf, type PayoutRequest, parseCommand } from './parse-command.ts'
import { type BatchFile, ownersOf } from './sql/holds.ts'
import { backToMark, markApart } from './sql/waiting.ts'
import { storeCommands } from './store-commands.ts'
import { takeTurn } from './take-turn.ts'

export type PreviewDeps = Pick<IntakeDeps, 'ledger' | 'terms' | 'keys' | 'decode'>
type TryDeps = PreviewDeps & { own: OwnFiles }

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
  readonly expected: Map<Letter, Expected>
  constructor(expected: Map<Letter, Expected>) {
    super()
    this.expected = expected
  }
}

/** As intake does, in the order of the letters, but keeps to itself whose the files become. */
function ownTried(letters: readonly Letter[]): OwnFiles {
  const first = new Map<bigint, BatchFile>()
  for (const { parsed } of letters) {
    if (parsed.kind !== 'payout' || parsed.faults.length > 0) continue
    const { merchantId, batchId } = parsed.command
    const file = fileMark(parsed.command)
    if (batchId !== null && file !== null && !first.has(file)) first.set(file, { file, merchantId, batchId })
  }
  return async (tx, files) => {
    const owners = new Map((await tx.run(ownersOf, { files })).map((owner) => [owner.file, owner]))
    return files.map(({ file, ...each }) => {
      const owner = owners.get(file)
      return owner ?? { ...each, ...first.get(file), file, since: tx.now }
    })
  }
}

/**
 * What intake would do with these values if they came now, in this order. It stores each as intake does, part by part, and rolls
 * every part back. What is about the same payout, bank account or beneficiary is in one part, up to PART of it: only there values
 * are compared with each other, apart from their files. Throws when the registry or the database does not answer.
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
  const expected = new Map<Letter, Expected>()
  const own = ownTried(letters)
  for (const part of inParts(letters, deps.keys))
    for (const [letter, each] of await tryPart(part, { ...deps, own })) expected.set(letter, each)
  return letters.map((letter) => expected.get(letter) as Expected)
}

async function tryPart(part: Part, deps: TryDeps): Promise<Map<Letter, Expected>> {
  try {
    return await deps.ledger.db.transaction('preview of commands', async (tx) => {
      await takeTurn(tx, part.flat(2).map(merchantOf))
      const expected = new Map<Letter, Expected>()
      for (const set of inSets(part))
        for (const [i, each] of (await trySet(tx, set, deps)).entries()) expected.set(set[i] as Letter, each)
      throw new Tried(expected)
    })
  } catch (error) {
    if (error instanceof Tried) return error.expected
    throw error
  }
}

/** If the database refuses something of a set, tries halves of it down to the single letter. */
async function trySet(tx: Transaction, some: readonly Letter[], deps: TryDeps): Promise<Expected[]> {
  await tx.run(markApart, {})
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

/** Letters of one kind. */
async function tryOut(tx: Transaction, some: readonly Letter[], deps: TryDeps): Promise<Expected[]> {
  const requests = some.flatMap(({ parsed }) => (parsed.kind === 'payout' ? [parsed] : []))
  if (requests.length > 0) return tryPayouts(tx, requests, deps)
  const cancels = some.flatMap(({ parsed }) => (parsed.kind === 'cancel' ? [parsed] : []))
  if (cancels.length > 0) return tryCancels(tx, cancels, deps)
  return some.flatMap(({ parsed, detail }): Expected[] => {
    if (parsed.kind === 'dead') return [{ ...parsed, detail }]
    return parsed.kind === 'batch' ? [{ kind: 'batch', batchId: parsed.declaration.batchId }] : []
  })
}

async function tryCancels(
  tx: Transaction,
  cancels: readonly CancelRequest[],
  { ledger }: PreviewDeps,
): Promise<Expected[]> {
  await storeCancels(tx, ledger, cancels)
  const payouts = new Map((await lockPayouts(tx, cancels)).map((payout) => [keyOf(payout), payout]))
  return cancels.map((cancel) => {
    const { merchantId, payoutId } = cancel
    return { kind: 'cancel', merchantId, payoutId, to: payouts.get(keyOf(cancel))?.state ?? null }
  })
}

async function tryPayouts(
  tx: Transaction,
  requests: readonly PayoutRequest[],
  { ledger, keys, own }: TryDeps,
): Promise<Expected[]> {
  const { fresh, contradicting } = await storeCommands(tx, ledger, keys, requests, own)
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
