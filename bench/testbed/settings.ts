/** How much to measure, and under which conditions. */
export type BenchSettings = {
  /** Commands on Kafka before the worker starts. */
  payouts: number
  /** How often each contender runs; they take turns. */
  rounds: number
  /** Apply calls in flight at once. */
  inFlight: number
  /** How long the gateway takes for every answer, in ms. */
  latencyMs: number
  /** Whether 5 % of the applies take 300 ms longer. */
  tail: boolean
}

/** From acceptance to the callback. */
export const SETTLE_MS = 50
/** After the backlog: loads that leave every contender room, to show how long a payout takes without a queue. */
export const STEADY = [
  { perSecond: 200, seconds: 10 },
  { perSecond: 10, seconds: 10 },
]

/** Enough for code to be compiled; not counted. */
export const WARM_UP_PAYOUTS = 2_000

export const MERCHANT_ID = 'bench'
export const GATEWAY = { mchId: '1000100', key: 'bench-only-key-8f32c912daa29d' }
/** An account belongs to one merchant; those of a run are counted from 0. */
export const mchIdOf = (merchant: number): string => String(Number(GATEWAY.mchId) + merchant)
