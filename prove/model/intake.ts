import { createSecretKey, type KeyObject } from 'node:crypto'
import type { PayoutCommand } from '../../src/payout/command.ts'
import { fingerprint, orderNumber } from '../../src/payout/identifiers.ts'
import type { Instant } from '../../src/payout/instant.ts'
import type { Payout } from '../../src/payout/payout.ts'
import { anomaly } from '../../src/payout/transition.ts'
import { validate } from '../../src/payout/validate.ts'
import { store, type Tables, tell } from './ledger.ts'
import type { Parts } from './parts.ts'

/** What upstream puts on `payout.commands`. */
export type Command = { kind: 'pay'; command: PayoutCommand } | { kind: 'cancel'; payoutId: string }

export const DEADLINE_MS = 600_000
const KEY: KeyObject = createSecretKey(Buffer.alloc(32, 7))

/** Takes commands in as intake does: each payoutId once, whatever its content; cancellations after the payouts. */
export function takeIn(tables: Tables, commands: readonly Command[], parts: Parts, now: Instant): void {
  for (const each of commands) if (each.kind === 'pay') accept(tables, each.command, now)
  for (const each of commands) {
    if (each.kind !== 'cancel') continue
    const payout = tables.payouts.get(each.payoutId)
    if (payout) store(tables, [parts.cancel(payout, 'COMMAND', 'hr: left the company')], now)
  }
}

function accept(tables: Tables, command: PayoutCommand, now: Instant): void {
  const content = fingerprint(command, KEY)
  const before = tables.fingerprints.get(command.payoutId)
  const payout = arrival(command, now)
  if (before) {
    if (!before.equals(content)) {
      store(tables, [anomaly(payout, 'COMMAND', 'same-id-other-content', 'not taken in', null)], now)
    }
    return
  }
  tables.fingerprints.set(command.payoutId, content)
  tables.payouts.set(payout.payoutId, payout)
  tell(tables, { payout, from: null, source: 'COMMAND', faults: [], at: now })
}

/** The payout that a command begins as. */
function arrival(command: PayoutCommand, now: Instant): Payout {
  const { merchantId, payoutId, batchId, amount, currency, notBefore } = command
  const refused = validate(command, { minAmount: null, maxAmount: null }).length > 0
  const deadline = (refused ? null : command.deadline) ?? now + DEADLINE_MS
  const begin = refused
    ? ({ state: 'rejected', reason: 'faults', ready: false, dueAt: null } as const)
    : notBefore !== null && notBefore > now
      ? ({ state: 'held', reason: 'schedule', ready: false, dueAt: Math.min(notBefore, deadline) } as const)
      : ({ state: 'queued', reason: null, ready: true, dueAt: deadline } as const)
  return {
    ...begin,
    merchantId,
    payoutId,
    batchId,
    orderNo: refused ? null : orderNumber(merchantId, payoutId, 1),
    amount,
    currency,
    version: 1,
    attempt: 0,
    agentpayOrderId: null,
    fee: null,
    utr: null,
    deadline,
    unknownSince: null,
    queries: 0,
    absences: 0,
  }
}
