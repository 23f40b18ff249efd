import type { State } from '../domain/payout/states.ts'
import { pages } from '../platform/postgres/pages.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { type Listed, pageInStates, payoutsNamed } from './sql/payouts/list.ts'

/** The first payouts of a merchant in these states, in the order in which they were accepted, however old. Reads by pages. */
export async function payoutsInStates(
  db: Database,
  { merchantId, states, limit }: { merchantId: string; states: State[]; limit: number },
): Promise<Listed[]> {
  let first: { payoutId: string; seq: bigint }[] = []
  const asked = { merchantId, states, wanted: limit }
  for await (const page of pages((page) => db.run(pageInStates, { ...asked, ...page }))) {
    const found = page.flatMap(({ payoutId, seq }) => (payoutId === null ? [] : [{ payoutId, seq }]))
    first = [...first, ...found].toSorted((a, b) => (a.seq < b.seq ? -1 : 1)).slice(0, limit)
  }
  return db.run(payoutsNamed, { merchantId, payoutIds: first.map(({ payoutId }) => payoutId) })
}
