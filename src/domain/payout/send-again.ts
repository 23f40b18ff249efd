import type { Instant } from '../instant.ts'
import { queueAgain } from './cancel.ts'
import type { GatewayPromises } from './next-query.ts'
import type { Payout } from './payout.ts'
import type { PayoutFields } from './transition.ts'

/** The fields that decide whether a waiting payout may be sent again. */
export type SentAgain = Pick<Payout, 'doubted' | 'absenceConfirmed' | 'unpaidCodes'>

/**
 * Why these promises forbid sending a waiting payout again, whatever queued it; null: it may be sent. A promise must hold
 * when payoutd uses it: a dialect corrected since then no longer makes it.
 */
export function withdrawnPromise(payout: SentAgain, promises: GatewayPromises): string | null {
  if (payout.doubted && !payout.absenceConfirmed && !promises.duplicatesRefused)
    return 'an earlier attempt may be alive, and the settings in force do not say that the gateway refuses duplicates'
  const code = withdrawnCode(payout, promises)
  return code === null
    ? null
    : `the gateway said ${code} to an attempt, and the settings in force do not say that such an attempt is not paid`
}

/** The code of a refusal or a "later" that these promises do not take to mean that the attempt is not paid; null: there is none. */
export const withdrawnCode = (
  { unpaidCodes }: Pick<Payout, 'unpaidCodes'>,
  { notPaidCodes }: Pick<GatewayPromises, 'notPaidCodes'>,
): string | null => codesIn(unpaidCodes).find((code) => !notPaidCodes.includes(code)) ?? null

/** The same payout after an attempt that is not paid: it waits to be sent again, and nothing of that attempt is alive at its account. */
export const afterUnpaid = (
  payout: Payout,
  fields: PayoutFields & { reason: string },
  now: Instant,
): Payout =>
  queueAgain(payout, {
    ...fields,
    accountId: payout.doubted ? payout.accountId : null,
    dueAt: now + backOffMs(payout.attempt),
  })

/** 0.4 s after the first attempt, doubling up to a minute. */
const backOffMs = (attempt: number): number => Math.min(60_000, 200 * 2 ** attempt)

/** `unpaidCodes` with this code as the last. */
export const withCode = (unpaidCodes: string | null, code: string): string =>
  [...codesIn(unpaidCodes).filter((each) => each !== code), code].join('\n')

/** The latest such code; undefined: there was none. */
export const lastCode = ({ unpaidCodes }: Pick<Payout, 'unpaidCodes'>): string | undefined =>
  codesIn(unpaidCodes).at(-1)

const codesIn = (unpaidCodes: string | null): string[] => unpaidCodes?.split('\n') ?? []
