import { mapKey } from '../../platform/map-key.ts'

/** A payout or a payin. */
export type Subject = { merchantId: string; id: string }

/**
 * Evidence that moved nothing; `exchange` is JSON text. `stays`: it counts against no limit, because it reported something new
 * or comes from an operator.
 */
export type Unmoved = Subject & {
  toState: string
  source: string
  exchange: string
  stays: boolean
}

/** The same with how often it was reported. */
export type Repeated = Unmoved & { times: number }

/** How many different reports that moved nothing the ledger keeps about one payout or payin. */
export const MOST_UNMOVED = 100

/** How many reports about it are kept. */
export type KeptCount = Subject & { kept: number }

/** Stands in for each report beyond MOST_UNMOVED. */
export const BEYOND_UNMOVED = {
  note: `payoutd keeps ${MOST_UNMOVED} different reports that changed nothing, and only counts further ones here`,
}

/** Whether one of these fields got its first value. */
export const completes = <Stored>(
  before: Stored,
  after: Stored,
  fields: readonly (keyof Stored)[],
): boolean => fields.some((field) => before[field] === null && after[field] !== null)

type RepeatedEntry<Entry> = Repeated & { entry: Entry }

type RepeatStore<Entry> = {
  /** Null: the entry moved something. */
  unmovedBy: (entry: Entry) => Unmoved | null
  /** The same entry with BEYOND_UNMOVED in place of its report. */
  beyond: (entry: Entry) => Entry
  /** Counts up the reports that are kept already, and returns their places, from 1. */
  count: (repeated: readonly Repeated[]) => Promise<{ place: number }[]>
  /** Counts what is kept about each, up to `most`. */
  kept: (about: readonly Subject[], most: number) => Promise<KeptCount[]>
  insert: (entries: Entry[]) => Promise<void>
}

/**
 * Writes the history. Evidence that moved nothing is written once and then counted, so that tables do not grow. Reports beyond
 * MOST_UNMOVED are counted in one entry per source and state.
 */
export async function recordOnce<Entry>(
  entries: readonly Entry[],
  keeping: RepeatStore<Entry>,
): Promise<void> {
  const beyond = await recordWithin(entries, keeping, (fresh) => withoutRoom(fresh, keeping))
  if (beyond.length > 0) await recordWithin(beyond.map(keeping.beyond), keeping, async () => new Set())
}

/** Returns the entries that `findBeyond` finds among those not kept yet, each as often as it was reported. */
async function recordWithin<Entry>(
  entries: readonly Entry[],
  { unmovedBy, count, insert }: RepeatStore<Entry>,
  findBeyond: (fresh: readonly RepeatedEntry<Entry>[]) => Promise<ReadonlySet<RepeatedEntry<Entry>>>,
): Promise<Entry[]> {
  const said = new Map<string, RepeatedEntry<Entry>>()
  const places = entries.map((entry) => {
    const evidence = unmovedBy(entry)
    if (evidence === null) return null
    const { stays, ...same } = evidence
    const key = JSON.stringify(Object.values(same))
    const before = said.get(key)
    if (before) before.times++
    else said.set(key, { ...evidence, entry, times: 1 })
    return key
  })
  const all = [...said.values()]
  const known = new Set<RepeatedEntry<Entry>>()
  if (all.length > 0) {
    for (const { place } of await count(all)) known.add(all[place - 1] as RepeatedEntry<Entry>)
  }
  const fresh = all.filter((each) => !known.has(each))
  const beyond = fresh.length > 0 ? await findBeyond(fresh) : new Set<RepeatedEntry<Entry>>()
  const unrecorded = entries.filter((entry, i) => {
    const each = said.get(places[i] ?? '')
    return !each || (each.entry === entry && !known.has(each) && !beyond.has(each))
  })
  if (unrecorded.length > 0) await insert(unrecorded)
  const again = fresh.flatMap((each) =>
    each.times > 1 && !beyond.has(each) ? [{ ...each, times: each.times - 1 }] : [],
  )
  if (again.length > 0) await count(again)
  return entries.filter((_, i) => {
    const each = said.get(places[i] ?? '')
    return each && beyond.has(each)
  })
}

async function withoutRoom<Entry>(
  fresh: readonly RepeatedEntry<Entry>[],
  { kept }: RepeatStore<Entry>,
): Promise<ReadonlySet<RepeatedEntry<Entry>>> {
  const bySubject = Map.groupBy(fresh, ({ merchantId, id }) => mapKey(merchantId, id))
  const subjects = [...bySubject.values()].flatMap(([first]) => first ?? [])
  const found = await kept(subjects, MOST_UNMOVED)
  return new Set(
    found.flatMap(({ merchantId, id, kept }) => {
      const mayWait = (bySubject.get(mapKey(merchantId, id)) ?? []).filter(({ stays }) => !stays)
      return mayWait.slice(MOST_UNMOVED - kept)
    }),
  )
}
