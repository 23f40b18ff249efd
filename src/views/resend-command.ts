/**
 * The command that sends a payout again if the attempt is still its latest; the caller adds who confirmed its absence, who
 * decides and why.
 */
export const resendCommand = (payout: { merchantId: string; payoutId: string; attempt: number }): string =>
  `payoutd payout resolve ${payout.payoutId} --merchant ${payout.merchantId} --resend --attempt ${payout.attempt}`
