/**
 * Safeguards whose lack the simulation cannot notice, and why; the scenes on real servers do
 * (prove/sections/safeguards.ts). It must notice all others of prove/without/safeguards.ts.
 */
export const UNSEEN: Readonly<Record<string, string>> = {
  'topic id': 'its Kafka keeps one log for ever, and no topic is made again',
  'time limits of statements':
    'its database answers at once or not at all, over no connection that could stay open',
  'ends of payins read back': 'it has no payins',
  'faulty commands held while fenced': 'none of its commands breaks a rule',
  'no failure while fenced':
    'its people confirm truthfully, so that no order fails while another of the same payout is alive',
  'failure in doubt': 'its people confirm truthfully, so that no payout has two orders that are alive',
}
