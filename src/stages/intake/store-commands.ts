import type { PayoutCommand } from '../../domain/commands/command.ts'
import { heldRefused } from '../../domain/commands/refused.ts'
import { contentHash } from '../../domain/identifiers.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { anomaly } from '../../domain/payout/transition.ts'
import type { Published } from '../../domain/recovery/published-story.ts'
import { readBackLate } from '../../domain/recovery/read-back.ts'
import {
  fencedBeforeCancels,
  keyOf,
  type Ledger,
  storeArrivals,
  storeDecisions,
} from '../../ledger/ledger.ts'
import { storeRecalled, takeStories } from '../../ledger/published-messages.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { applyEarlyCancels, fenceReported } from './early-cancels.ts'
import { fileOwners, holdDoubtful, ownFiles } from './holds.ts'
import { commandRow, type IntakeKeys, type NewPayout, newPayout, payoutRow } from './new-payout.ts'
import type { PayoutRequest } from './parse-command.ts'
import { insertCommands, insertPayouts, type TakenIn, takenIn } from './sql/commands.ts'

/**
 * Stores commands, each payoutId once, whatever its content, in a transaction that has called `takeTurn`:
 * - A refused command becomes `rejected` (or held while its merchant is fenced: see `heldRefused`) and spends its id.
 * - An identical repeat writes nothing, unless it came in another file. The same id with other content is an anomaly.
 * - A payout that looks like an earlier payment, or has other bank details than before, is held if its merchant's terms say so.
 * - A payout that was cancelled before it came is cancelled.
 * - A payout that a lost ledger published before is not new (see `readBackLate`).
 *
 * Returns the new payouts as they are now, and the commands that contradict what their id stands for.
 */
export async function storeCommands(
  tx: Transaction,
  ledger: Ledger,
  keys: IntakeKeys,
  requests: readonly PayoutRequest[],
  own = ownFiles,
): Promise<{ fresh: Payout[]; contradicting: PayoutCommand[] }> {
  if (requests.length === 0) return { fresh: [], contradicting: [] }
  const asked = requests.map((request) => newPayout(request, keys, tx.now))
  const reported = await fenceReported(
    tx,
    asked.map(({ payout }) => payout),
  )
  const stories = await takeStories(
    tx,
    asked.map(({ payout }) => payout),
    { lacked: true },
  )
  const prepared = (await holdRefused(tx, asked, stories)).map((each) =>
    stories.has(keyOf(each.payout)) ? { ...each, payout: untold(each.payout) } : each,
  )
  const first = new Map<string, NewPayout>()
  for (const each of prepared) if (!first.has(keyOf(each.payout))) first.set(keyOf(each.payout), each)

  const inserted = new Set(
    (await tx.run(insertPayouts, { payouts: [...first.values()].map(payoutRow) })).map(keyOf),
  )
  const fresh = [...first.values()].filter(({ payout }) => inserted.has(keyOf(payout)))
  const owners = await fileOwners(tx, prepared, own)
  const now = new Map<string, Payout>()
  if (fresh.length > 0) {
    await tx.run(insertCommands, { commands: fresh.map(commandRow) })
    const arrived = await holdDoubtful(tx, fresh, owners)
    await storeArrivals(tx, ledger, arrived)
    const payouts = await readBack(tx, arrived, stories, ledger)
    for (const payout of payouts) now.set(keyOf(payout), payout)
    const overtaken = await applyEarlyCancels(tx, payouts, reported)
    await storeDecisions(tx, ledger, overtaken)
    for (const each of overtaken) if ('change' in each) now.set(keyOf(each.change.after), each.change.after)
  }
  const repeats = prepared.filter(
    (each) => first.get(keyOf(each.payout)) !== each || !inserted.has(keyOf(each.payout)),
  )
  const contradicting = await contradictions(tx, repeats, keys)
  await storeDecisions(
    tx,
    ledger,
    contradicting.map(({ decision }) => decision),
  )
  return { fresh: [...now.values()], contradicting: contradicting.map(({ command }) => command) }
}

/** Prepares refused payouts to be stored. One that cannot have been sent has no order number. */
async function holdRefused(
  tx: Transaction,
  asked: readonly NewPayout[],
  stories: ReadonlyMap<string, Published>,
): Promise<NewPayout[]> {
  const refused = asked.filter(({ faults }) => faults.length > 0)
  if (refused.length === 0) return [...asked]
  const fenced = await fencedBeforeCancels(tx, [...new Set(refused.map(({ payout }) => payout.merchantId))])
  return asked.map((each) => {
    const { payout, faults } = each
    if (faults.length === 0) return each
    const mayBeSent = fenced.has(payout.merchantId) || stories.has(keyOf(payout))
    return { ...each, payout: mayBeSent ? heldRefused(payout, faults) : { ...payout, orderNo: null } }
  })
}

/** Its story has what was published about it. */
const untold = (payout: Payout): Payout => ({ ...payout, version: 0, ready: false })

/** Applies their stories to those of these new payouts that have one. Returns all of them, as they are now. */
async function readBack(
  tx: Transaction,
  arrived: readonly NewPayout[],
  stories: ReadonlyMap<string, Published>,
  ledger: Ledger,
): Promise<Payout[]> {
  const published = arrived.flatMap(({ payout, faults }) => {
    const story = stories.get(keyOf(payout))
    if (!story) return []
    const recalled = readBackLate(payout, story)
    return [{ before: payout, recalled, faults, isResultDue: true }]
  })
  if (published.length === 0) return arrived.map(({ payout }) => payout)
  const after = new Map((await storeRecalled(tx, ledger, published)).map((payout) => [keyOf(payout), payout]))
  return arrived.map(({ payout }) => after.get(keyOf(payout)) ?? payout)
}

/** Repeats whose content differs from what the id stands for. */
async function contradictions(
  tx: Transaction,
  repeats: readonly NewPayout[],
  keys: IntakeKeys,
): Promise<{ command: PayoutCommand; decision: Decision }[]> {
  if (repeats.length === 0) return []
  const stored = await tx.run(takenIn, { wanted: repeats.map(({ payout }) => payout) })
  const known = new Map(stored.map((row) => [keyOf(row), row]))
  return repeats.flatMap((repeat) => {
    const before = known.get(keyOf(repeat.payout))
    const detail = before && difference(before, repeat, keys)
    if (!detail) return []
    const odd = anomaly(repeat.payout, 'COMMAND', 'same-id-other-content', detail, null)
    const fingerprints = [before.fingerprint.toString('hex'), repeat.fingerprint.toString('hex')] as const
    return [{ command: repeat.command, decision: { anomaly: { ...odd.anomaly, fingerprints } } }]
  })
}

/** How a repeat differs from the command that its id stands for, in words; null: it does not. */
function difference(before: TakenIn, repeat: NewPayout, keys: IntakeKeys): string | null {
  const end = before.refused
    ? 'payoutd did not accept it, because a refused command used up the id: send it under another payoutId'
    : 'payoutd did not accept it'
  const inShort = (hash: Buffer) => hash.toString('hex').slice(0, 16)
  if (!before.fingerprint.equals(repeat.fingerprint)) {
    return `the first command with this id has the hash ${inShort(before.fingerprint)}, this one has ${inShort(repeat.fingerprint)}: ${end}`
  }
  if (before.content === null) return null
  if (before.content.equals(contentHash(repeat.command, before, keys.fingerprint))) return null
  return (
    `the first command with this id makes the same payment, but differs in other content (batch, times, priority, beneficiaryId, ` +
    `phone, e-mail or remark); without its deadline, this one has the hash ${inShort(ofEachTry(repeat.command, keys))}: ${end}`
  )
}

/** The content without what a sender changes with each try (the deadline, its own words), so that all tries are one anomaly. */
const ofEachTry = (command: PayoutCommand, keys: IntakeKeys): Buffer =>
  contentHash({ ...command, deadline: null }, { refused: false }, keys.fingerprint)
