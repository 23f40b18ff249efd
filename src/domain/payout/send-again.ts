import type { Payout } from './payout.ts'

/** The promises of a gateway, from its dialect, on which payoutd sends a payout again. */
export type GatewayPromises = {
  /** It never pays one order number twice. */
  duplicatesRefused: boolean
  /** The retCodes of apply answers that mean that this attempt is not paid. */
  notPaidCodes: readonly string[]
}

/** The fields that decide whether a waiting payout may be sent again. */
export type SentAgain = Pick<Payout, 'doubted' | 'absenceConfirmed' | 'laterCodes'>

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

/** The code of an answer that payoutd took for "later", though these promises do not; null: there is none. */
export const withdrawnCode = (
  { laterCodes }: Pick<Payout, 'laterCodes'>,
  { notPaidCodes }: Pick<GatewayPromises, 'notPaidCodes'>,
): string | null => laterCodes?.split('\n').find((code) => !notPaidCodes.includes(code)) ?? null

/** Adds one code to `laterCodes`. */
export function withCode(laterCodes: string | null, code: string): string {
  if (laterCodes === null) return code
  return laterCodes.split('\n').includes(code) ? laterCodes : `${laterCodes}\n${code}`
}
