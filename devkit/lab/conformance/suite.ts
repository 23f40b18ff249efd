import type { Case } from './case.ts'
import { balance } from './cases/balance.ts'
import { callbacks } from './cases/callbacks.ts'
import { payinCreate } from './cases/payin-create.ts'
import { payinQuery } from './cases/payin-query.ts'
import { payinRecovery } from './cases/payin-recovery.ts'
import { payoutCreate } from './cases/payout-create.ts'
import { payoutQuery } from './cases/payout-query.ts'
import { signature } from './cases/signature.ts'
import { Differs, NotTried } from './demand.ts'
import { Subject, type SubjectSettings } from './subject.ts'

/** Every case, in the order of testing. */
export const CASES: readonly Case[] = [
  ...signature,
  ...payinCreate,
  ...payinQuery,
  ...payinRecovery,
  ...payoutCreate,
  ...payoutQuery,
  ...balance,
  ...callbacks,
]

/**
 * The result of a case. `holds` and `differs` are about what the contract says; `not-shown` describes what this
 * server does where the contract says nothing. `seen` is what the server did, or why the case was not tried.
 */
export type Verdict = {
  case: Case
  verdict: 'holds' | 'differs' | 'not-shown' | 'not-tried'
  seen: string
}

/**
 * Tries every case, one after the other, at a server of the family, and yields each verdict as it comes. It creates
 * payins and payouts of one rupee each. Throws on an invalid base URL, and on a fault that is not the server's.
 */
export async function* tryConformance(settings: SubjectSettings): AsyncGenerator<Verdict> {
  const subject = new Subject(settings)
  try {
    for (const each of CASES) yield { case: each, ...(await tryCase(each, subject)) }
  } finally {
    await subject.close()
  }
}

async function tryCase(each: Case, subject: Subject): Promise<Omit<Verdict, 'case'>> {
  try {
    const seen = await each.ask(subject)
    return { verdict: each.open ? 'not-shown' : 'holds', seen }
  } catch (error) {
    if (error instanceof Differs) return { verdict: 'differs', seen: error.message }
    if (error instanceof NotTried) return { verdict: 'not-tried', seen: error.message }
    throw error
  }
}
