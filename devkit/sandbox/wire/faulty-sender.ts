import type { Clock } from '../../../src/platform/running/clock.ts'
import { withTimeOff } from '../clock-shift.ts'
import type { Faults } from '../faults.ts'
import type { CallbackSender, Seal } from './callbacks.ts'
import type { Delivery } from './deliveries.ts'

type SentFields = Record<string, string>

/** Sends callbacks with the requested faults. */
export class FaultySender {
  readonly #sender: CallbackSender
  readonly #faults: Faults
  readonly #clock: Clock

  constructor(sender: CallbackSender, faults: Faults, clock: Clock) {
    this.#sender = sender
    this.#faults = faults
    this.#clock = clock
  }

  /** Resolves with the delivery of the callback itself, not of what a fault sent besides. Never rejects. */
  async send(notifyUrl: string, fields: SentFields, seal: Seal): Promise<Delivery> {
    const operation = 'agentpayOrderId' in fields ? 'payoutCallback' : 'payinCallback'
    const fault = this.#faults.strike(operation, seal.merchant.mchId)
    switch (fault?.fault) {
      case 'lost-callback':
        return { ...LOST, at: this.#clock.now() }
      case 'unsigned':
        return await this.#sender.send(notifyUrl, fields, { ...seal, signed: 'not' })
      case 'wrongly-signed':
        return await this.#sender.send(notifyUrl, fields, { ...seal, signed: 'wrongly' })
      case 'clock-shift':
        return await this.#sender.send(notifyUrl, withTimeOff(fields, fault.shiftMs), seal)
      case 'duplicate-callback':
        return await this.#sendBoth(notifyUrl, fields, fields, seal)
      case 'out-of-order-callback':
        return await this.#sendBoth(notifyUrl, fields, before(fields), seal)
      case 'contradictory-callback':
        return await this.#sendContradiction(notifyUrl, fields, seal)
      default:
        return await this.#sender.send(notifyUrl, fields, seal)
    }
  }

  async #sendBoth(notifyUrl: string, fields: SentFields, besides: SentFields, seal: Seal): Promise<Delivery> {
    const delivery = await this.#sender.send(notifyUrl, fields, seal)
    await this.#sender.send(notifyUrl, besides, seal)
    return delivery
  }

  /** A merchant that never received the truth has nothing to contradict. */
  async #sendContradiction(notifyUrl: string, fields: SentFields, seal: Seal): Promise<Delivery> {
    const delivery = await this.#sender.send(notifyUrl, fields, seal)
    if (delivery.acknowledged) await this.#sender.send(notifyUrl, contradiction(fields), seal)
    return delivery
  }
}

const LOST = {
  ...{ acknowledged: false, httpStatus: null, answer: '', error: 'lost by a fault', durationMs: 0 },
} as const

/** What the callback could have reported before the order ended. */
function before({ errorMessage: _, ...fields }: SentFields): SentFields {
  const sooner = 'agentpayOrderId' in fields ? { status: '1' } : { status: '0', paySuccTime: '' }
  return { ...fields, channelPayNo: '', ...sooner }
}

/** The other end of the order. */
const contradiction = ({ errorMessage: _, ...fields }: SentFields): SentFields =>
  fields.status === '2' ? { ...fields, status: '3', errorMessage: 'not so' } : { ...fields, status: '2' }
