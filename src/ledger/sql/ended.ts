import { endedUnpaid, STATES } from '../../domain/payout/states.ts'

const ends = STATES.filter(endedUnpaid).map((state) => `'${state}'`)

/** For a row `p` of payouts: it ended, and not as paid. */
export const isEndedUnpaid = `(p.state in (${ends.join(', ')}))`
