import type { ApplyAnswer, QueryAnswer } from '../../src/payout/answers.ts'
import type { Instant } from '../../src/payout/instant.ts'
import type { Paise } from '../../src/payout/money.ts'
import type { Apply, Verdict } from './gateway.ts'

/** The balance, and what had gone off it unforeseen: only the oracle looks at that. */
export type Balance = { available: Paise; unforeseen: bigint }

type Asked<Kind extends string, About, Answer> = {
  kind: Kind
  about: About
  sentAt: Instant
  from: string
  /** What the gateway has answered, on its way back. */
  reply: Answer | null
  /** What came back. */
  answer: Answer | null
}
/** What will become of an apply where the scheduler does not choose anew. */
export type Fate =
  | Verdict
  | 'connection refused'
  | 'lost on the way'
  | 'answer lost'
  | 'answer garbled'
  | 'not found for long'
export type ApplyCall = Asked<'apply', Apply & { payoutId: string; fate: Fate }, ApplyAnswer>
/** `elsewhere`: the settings of the process that asks are wrong, so that it asks in the wrong place. */
export type QueryCall = Asked<
  'query',
  { mchOrderNo: string; payoutId: string; elsewhere: boolean },
  QueryAnswer
>
export type BalanceCall = Asked<'balance', null, Balance | 'unknown'>
export type Call = ApplyCall | QueryCall | BalanceCall

/** Calls under way. The scheduler decides when one arrives, when its answer does, or that neither ever will. */
export class Network {
  calls: Call[] = []

  send<One extends Call>(call: One): One {
    this.calls.push(call)
    return call
  }

  get onTheWay(): Call[] {
    return this.calls.filter(({ reply }) => reply === null)
  }

  get comingBack(): Call[] {
    return this.calls.filter(({ reply }) => reply !== null)
  }

  lose(call: Call): void {
    this.calls = this.calls.filter((each) => each !== call)
  }
}
