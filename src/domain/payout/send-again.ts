import type { Payout } from './payout.ts'

/** What a dialect says of a gateway, and what a payout is sent again on. */
export type GatewayPromises = {
  /** It never pays one order number twice. */
  duplicatesRefused: boolean
  /** The retCodes to an apply that say that this attempt is not paid. */
  notPaidCodes: readonly string[]
}

/** On what a payout that waits is sent again. */
export type SentAgain = Pick<Payout, 'doubted' | 'absenceConfirmed' | 'laterCodes'>

/**
 * Why a payout that waits must not be sent again by these promises, whatever it was queued by; null: it may. A promise counts
 * when it is used: one that was corrected since is not kept.
 */
export function withdrawnPromise(payout: SentAgain, promises: GatewayPromises): string | null {
  if (payout.doubted && !payout.absenceConfirmed && !promises.duplicatesRefused)
    return 'an earlier attempt may be alive, and the settings in force do not say that the gateway refuses duplicates'
  const code = withdrawnCode(payout, promises)
  return code === null
    ? null
    : `the gateway said ${code} to an attempt, and the settings in force do not say that such an attempt is not paid`
}

/** An answer to one of its attempts that was taken for "later", and by these promises is not; null: there is none. */
export const withdrawnCode = (
  { laterCodes }: Pick<Payout, 'laterCodes'>,
  { notPaidCodes }: Pick<GatewayPromises, 'notPaidCodes'>,
): string | null => laterCodes?.split('\n').find((code) => !notPaidCodes.includes(code)) ?? null

/** `laterCodes` with one more. */
export function withCode(laterCodes: string | null, code: string): string {
  if (laterCodes === null) return code
  return laterCodes.split('\n').includes(code) ? laterCodes : `${laterCodes}\n${code}`
}
