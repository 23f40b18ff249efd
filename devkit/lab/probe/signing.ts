import type { Params } from '../../../src/gateway/wire/request.ts'
import { type SignRules, signature, verify } from '../../../src/gateway/wire/sign.ts'
import { VARIANTS } from '../../../src/gateway/wire/sign-variants.ts'
import type { Conversation, Place, ProbeAnswer, ProbeReply } from './conversation.ts'

/**
 * Every signature variant that calls can tell apart; the dialect's default comes first. Callbacks, and whether
 * failures are signed, are as in the default in all of them.
 */
const WAYS: readonly SignRules[] = VARIANTS.flatMap(({ emptyFields: requests, ...variant }) =>
  [false, true].map((answers) => ({
    ...variant,
    emptyFields: { requests, answers, callbacks: false },
    failures: true,
  })),
)

/** How a gateway signs, as far as its replies have shown it. */
export class Signing {
  readonly #ask: Conversation['ask']
  readonly #key: string
  readonly #answers: ProbeAnswer[] = []
  #ways = WAYS

  constructor(ask: Conversation['ask'], key: string) {
    this.#ask = ask
    this.#key = key
  }

  /**
   * Makes one call per distinct signature of the variants still possible. Variants whose reply is `understood` stay
   * possible; if none is, the call shows nothing.
   */
  async call(place: Place, params: Params, parsed: (answer: ProbeAnswer) => boolean): Promise<Trial> {
    const kept: SignRules[] = []
    const answers: ProbeAnswer[] = []
    const replies: ProbeReply[] = []
    const bySignature = Map.groupBy(this.#ways, (rules) => signature(params, this.#key, rules, 'requests'))
    for (const [sign, ways] of bySignature) {
      const reply = await this.#ask(place, params, sign)
      replies.push(reply)
      if (reply.kind === 'silence' || reply.kind === 'nowhere') break
      if (reply.kind !== 'answer' || !parsed(reply)) continue
      kept.push(...ways)
      answers.push(reply)
    }
    if (kept.length > 0) this.#ways = kept
    this.#answers.push(...answers)
    return { answers, replies }
  }

  /** Makes a call with the signature of somebody who does not know the key. */
  wrongly(place: Place, params: Params): Promise<ProbeReply> {
    const [first] = this.#ways as readonly [SignRules]
    return this.#ask(place, params, signature(params, `not ${this.#key}`, first, 'requests'))
  }

  /**
   * The variants in which the gateway accepts requests and signs its answers, the default first among equals; empty
   * if it accepts no request signed the way it signs answers.
   */
  get ways(): readonly SignRules[] {
    return this.#ways.filter((rules) =>
      this.#answers.every(({ fields }) => verify(fields, this.#key, rules, 'answers') !== 'bad'),
    )
  }
}

/** The replies of one call, and which of them were understood. */
export type Trial = { answers: readonly ProbeAnswer[]; replies: readonly ProbeReply[] }
