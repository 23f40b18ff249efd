/** The states of a payin. */
export const PAYIN_STATES = ['creating', 'unknown', 'open', 'review', 'paid', 'failed', 'expired'] as const

export type PayinState = (typeof PAYIN_STATES)[number]

/** The states that payoutd publishes as a result. Nothing leaves `paid`; the gateway can still pay the other two late. */
export type PayinEnd = 'paid' | 'failed' | 'expired'

/**
 * | state | meaning |
 * |---|---|
 * | creating | the intent is committed; bytes may be on the wire |
 * | unknown | nobody can say yet whether the gateway has the order |
 * | open | the gateway has it and waits for the payer |
 * | review | the gateway contradicts itself, never answered, could not be asked, or named a payment and does not call it paid: a person looks; good evidence still ends it |
 * | paid | the gateway says that the payer paid, or a person ended the review |
 * | failed | the gateway says so, or is confirmed not to have the order, or a person ended the review |
 * | expired | nobody had paid when its time was over |
 */
const LEAVES_TO: Record<PayinState, readonly PayinState[]> = {
  creating: ['open', 'unknown', 'review', 'paid', 'failed'],
  unknown: ['open', 'review', 'paid', 'failed'],
  open: ['review', 'paid', 'failed', 'expired'],
  review: ['open', 'paid', 'failed'],
  paid: [],
  failed: ['paid'],
  expired: ['paid'],
}

export const mayMove = (from: PayinState, to: PayinState): boolean => LEAVES_TO[from].includes(to)

export const isEnd = (state: PayinState): state is PayinEnd =>
  state === 'paid' || state === 'failed' || state === 'expired'
