/**
 * The moments around everything that leaves a process: a commit, a request or its answer, a publish. The prover
 * ends or freezes a process at each of them; without a watcher they do nothing.
 */
export const MOMENTS = [
  'before commit',
  'after commit',
  'before send',
  'after send',
  'before publish',
  'after publish',
] as const

/** The commits. Each name appears at one place in the code, so that a crash there is one story. */
export const COMMITS = [
  'acknowledge anomalies',
  'add shards',
  'adopt settings',
  'ask again',
  'begin partition',
  'begin reconciliation',
  'cancel batch',
  'cancel payouts',
  'claim',
  'fence merchants',
  'finish reconciliation',
  'forget kept callbacks',
  'forget lag',
  'forget published',
  'intend payin',
  'intend payin recovery',
  'keep balance',
  'keep callback',
  'keep history',
  'keep reconciled payout',
  'keep refused evidence',
  'keep replays',
  'leave shards',
  'list open payouts',
  'list payouts to reconcile',
  'lower fence',
  'pause merchant',
  'prove keys',
  'recall published',
  'record apply answers',
  'record creation',
  'recover payin',
  'release held',
  'release payouts',
  'report lag',
  'require settings in force',
  'resolve payin',
  'resolve payout',
  'resume merchant',
  'retire keys',
  'retry messages',
  'reverse payout',
  'rotate keys',
  'rotate other seals',
  'set refused aside',
  'settle lost callback',
  'settle payins',
  'settle payouts',
  'settle recovered',
  'sweep early cancels',
  'sweep kept callbacks',
  'take due payins',
  'take due payouts',
  'take in commands',
  'take lost callbacks',
  'take shards',
  'unfence merchant',
] as const

/** The requests to the gateway. */
export const REQUESTS = [
  'apply',
  'balance',
  'payinCreate',
  'payinQuery',
  'payinRecovery',
  'payoutQuery',
] as const

/** The publishers to Kafka. */
export const PUBLISHERS = ['ingest', 'relay', 'replay'] as const

/** A transaction that is rolled back, or that is no part of the product, is no crash point. */
type Untried = `preview of ${string}` | 'test' | `test: ${string}`
export type CommitName = (typeof COMMITS)[number] | Untried
export type RequestName = (typeof REQUESTS)[number]
export type PublisherName = (typeof PUBLISHERS)[number] | 'test'
export type PointName = CommitName | RequestName | PublisherName

export type CrashMoment = (typeof MOMENTS)[number]
export type Watcher = (moment: CrashMoment, name: PointName) => void

let watcher: Watcher | undefined

/** From now on calls `watch` at every moment of this process, with the name that the caller gave it. */
export function watchCrashPoints(watch: Watcher): void {
  watcher = watch
}

/** A process that is killed here has done everything before this line and nothing after it. */
export function crashPoint(moment: CrashMoment, name: PointName): void {
  watcher?.(moment, name)
}
