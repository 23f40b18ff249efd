import type { Fault } from '../../domain/fault.ts'
import { type PayoutKey, payoutKey } from '../../domain/identifiers.ts'
import type { State } from '../../domain/payout/states.ts'
import { lockPayouts } from '../../ledger/ledger.ts'
import { blame, sql, type Transaction } from '../../platform/postgres/postgres.ts'
import type { Decoded } from '../../platform/registry/codec.ts'
import { storeCancels } from './early-cancels.ts'
import type { IntakeDeps } from './intake.ts'
import { type CancelRequest, type PayoutRequest, parseCommand } from './parse-command.ts'
import { storeCommands } from './store-commands.ts'

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

/** Not an error: rolls back the transaction of the preview, so that nothing of it stays. */
class Tried extends Error {
  readonly expected: Expected[]
  constructor(expected: Expected[]) {
    super()
    this.expected = expected
  }
}

const mark = sql<object>`savepoint tried`
const backToMark = sql<object>`rollback to savepoint tried`

/**
 * What intake would do with these values if they came now, in this order. It stores each as intake does, and rolls everything
 * back; meanwhile intake waits for payouts of the same ids. Throws when the registry or the database does not answer.
 */
export async function previewReplay(
  values: readonly (Buffer | null)[],
  deps: PreviewDeps,
): Promise<Expected[]> {
  const decoded: Decoded[] = []
  for (const value of values) decoded.push(await deps.decode(value))
  try {
    return await deps.ledger.db.transaction('preview of commands', async (tx) => {
      const expected: Expected[] = []
      for (const each of decoded) expected.push(await tryOut(tx, each, deps))
      throw new Tried(expected)
    })
  } catch (error) {
    if (error instanceof Tried) return error.expected
    throw error
  }
}

async function tryOut(tx: Transaction, decoded: Decoded, deps: PreviewDeps): Promise<Expected> {
  const parsed = parseCommand(decoded, deps.terms)
  await tx.run(mark, {})
  try {
    switch (parsed.kind) {
      case 'dead':
        return { ...parsed, detail: decoded.kind === 'undecodable' ? decoded.detail : null }
      case 'batch':
        return { kind: 'batch', batchId: parsed.declaration.batchId }
      case 'cancel':
        return await tryCancel(tx, parsed, deps)
      case 'payout':
        return await tryPayout(tx, parsed, deps)
    }
  } catch (error) {
    if (blame(error) === 'database') throw error
    await tx.run(backToMark, {})
    return { kind: 'dead', reason: 'refused-by-database', detail: null }
  }
}

async function tryCancel(tx: Transaction, cancel: CancelRequest, { ledger }: PreviewDeps): Promise<Expected> {
  const { merchantId, payoutId } = cancel
  await storeCancels(tx, ledger, [cancel])
  const [payout] = await lockPayouts(tx, [cancel])
  return { kind: 'cancel', merchantId, payoutId, to: payout?.state ?? null }
}

async function tryPayout(
  tx: Transaction,
  request: PayoutRequest,
  { ledger, keys }: PreviewDeps,
): Promise<Expected> {
  const { merchantId, payoutId } = request.command
  const key = { merchantId, payoutId }
  const { fresh, contradicting } = await storeCommands(tx, ledger, keys, [request])
  if (contradicting > 0) return { kind: 'contradicts', ...key }
  if (fresh.length === 0) return { kind: 'repeat', ...key }
  const [payout] = await lockPayouts(tx, [key])
  if (!payout) throw new Error(`payout ${payoutKey(key)} was accepted and is not there`)
  if (payout.state === 'rejected') return { kind: 'rejected', ...key, faults: request.faults }
  return { kind: 'accepted', ...key, state: payout.state, reason: payout.reason }
}
