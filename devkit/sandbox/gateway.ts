import type { Logger } from '../../src/platform/log.ts'
import type { Clock, Instant } from '../../src/platform/running/clock.ts'
import { pause } from '../../src/platform/running/lifecycle.ts'
import { withTimeOff } from './clock-shift.ts'
import type { Fault, Faults } from './faults.ts'
import type { Operations, Said } from './operations.ts'
import { NO_ORDER, refuse } from './operations.ts'
import type { Order } from './payouts/order.ts'
import { otherEnd } from './payouts/order-fields.ts'
import { orderNumber } from './payouts/order-number.ts'
import type { Payouts } from './payouts/payouts.ts'
import { operationAt } from './route.ts'
import type { Merchant, Merchants } from './state/merchants.ts'
import type { Store } from './state/store.ts'
import type { ResponseMode } from './test-accounts.ts'
import { answerToStranger, type GatewayReply, signedAnswer, unsignedAnswer } from './wire/answers.ts'
import type { Dialect } from './wire/dialect.ts'
import type { Exchanges } from './wire/exchanges.ts'
import type { Form } from './wire/form.ts'
import type { RuleRefusal } from './wire/rules.ts'
import { isSignedBy, type Signable } from './wire/sign.ts'

/** An apply that answers after its callback answers after this time even if the merchant never accepts the callback. */
const LONGEST_CALLBACK_MS = 5_000

/** A page instead of an answer, as a proxy in between might send. */
const GARBAGE = '<html><body><h1>Welcome!</h1></body></html>'

const FORGED: RuleRefusal = {
  retCode: 'SIGN_ERROR',
  retMsg: 'sign: is not the signature of these parameters',
}
const OUR_FAULT: RuleRefusal = { retCode: 'SYSTEM_ERROR', retMsg: 'see the log of the sandbox' }

type GatewayParts = {
  store: Store
  merchants: Merchants
  /** Its paths apply to callers that are not merchants. */
  dialect: Dialect
  operations: Operations
  payouts: Pick<Payouts, 'firstDelivery'>
  exchanges: Exchanges
  faults: Faults
  clock: Clock
  log: Logger
  /** The shortest time that any answer takes. */
  latencyMs: number
  signal: AbortSignal
}

/**
 * Every exchange of the contract passes here: it identifies the caller, checks the request, and answers at the
 * right time.
 */
export class Gateway {
  readonly #parts: GatewayParts

  constructor(parts: GatewayParts) {
    this.#parts = parts
  }

  /**
   * Answers one request to `path`; undefined if the merchant has no operation there. Only the balance query's
   * answer has no signature.
   */
  async answer(path: string, form: Form): Promise<GatewayReply | undefined> {
    const { merchants, dialect, exchanges, clock } = this.#parts
    const at = clock.now()
    const merchant = merchants.named(form.params.mchId ?? '')
    const name = operationAt(path, form.params, (merchant?.dialect ?? dialect).paths)
    if (!name) return undefined
    const reply = await this.#answer(name, form, merchant, at)
    exchanges.keep({ kind: 'asked', at, operation: name, form, merchant, reply })
    return reply
  }

  async #answer(
    name: keyof Operations,
    form: Form,
    merchant: Merchant | undefined,
    now: Instant,
  ): Promise<GatewayReply> {
    const { store, operations, faults, clock, log, latencyMs, signal } = this.#parts
    const begun = clock.monotonic()
    const writeUnsigned = name === 'queryBalance' ? unsignedAnswer : answerToStranger
    if (!merchant) return { status: 200, body: writeUnsigned(nobody(form)) }
    if (form.from !== merchant.dialect.body) return { status: 415, body: writeUnsigned(elsewhere(merchant)) }
    const key = keyOf(form, merchant)
    const write = writerFor(name, merchant, key ?? merchant.keys[0])
    let said: Said
    try {
      const refusal = checkForm(form, key)
      const fault = faults.strike(name, merchant.mchId, orderNumber(form.params))
      const shiftMs = fault?.fault === 'clock-shift' ? fault.shiftMs : 0
      const isDone = fault === undefined || !('done' in fault) || fault.done
      const denied = refusal ?? (fault?.fault === 'not-found' ? NO_ORDER : undefined)
      said = denied
        ? refuse(denied)
        : isDone
          ? operations[name](merchant, form.params, now + shiftMs)
          : NOTHING_DONE
      if (fault) said = struckBy(fault, said)
      await store.committed()
      if (said.order) await this.#afterItsCallback(said.order)
    } catch (error) {
      log.error({ err: error }, 'an operation failed')
      return { status: 500, body: write(OUR_FAULT) }
    }
    const late = said.responseMode.kind === 'late' ? said.responseMode.ms : 0
    const wait = latencyMs + late - (clock.monotonic() - begun)
    if (wait > 0) await pause(wait, signal)
    return reply(said, write)
  }

  async #afterItsCallback(order: Order): Promise<void> {
    const patience = AbortSignal.any([AbortSignal.timeout(LONGEST_CALLBACK_MS), this.#parts.signal])
    await this.#parts.payouts.firstDelivery(order, patience)
  }
}

const NOTHING_DONE: Said = { fields: {}, responseMode: { kind: 'plain' } }

/** The answer to a call that this fault strikes. */
function struckBy(fault: Fault, said: Said): Said {
  switch (fault.fault) {
    case 'not-found':
      return said
    case 'clock-shift':
      return { ...said, fields: withTimeOff(said.fields, fault.shiftMs) }
    case 'contradictory':
      return { ...said, fields: otherEnd(said.fields) }
    case 'denied':
      return refuse({ retCode: fault.retCode, retMsg: 'the request came a second time' })
    default:
      return { fields: said.fields, responseMode: responseModeOf(fault) }
  }
}

/** How the sandbox answers a call that this fault strikes. */
function responseModeOf(
  fault: Exclude<Fault, { fault: 'clock-shift' | 'not-found' | 'contradictory' | 'denied' }>,
): ResponseMode {
  switch (fault.fault) {
    case 'delay':
      return { kind: 'late', ms: fault.delayMs }
    case 'hang':
    case 'reset':
    case 'garbage':
    case 'unsigned':
      return { kind: fault.fault }
    case '500':
      return { kind: 'http-500' }
    case 'wrongly-signed':
      return { kind: 'bad-signature' }
    case 'lost-callback':
    case 'duplicate-callback':
    case 'out-of-order-callback':
    case 'contradictory-callback':
      throw new Error(`${fault.fault} strikes callbacks alone`)
  }
}

/** The merchant key that signed the request; it signs the answer, too. */
const keyOf = ({ params }: Form, { keys, dialect }: Merchant): string | undefined =>
  keys.find((key) => isSignedBy(params, key, dialect.sign, params.sign ?? ''))

/** Writes an answer: with a signature, except for the balance query. `spoilt`: with a wrong one. */
type Write = (fields: Signable, spoilt?: 'spoilt') => string

const writerFor =
  (name: keyof Operations, { dialect }: Merchant, key: string): Write =>
  (fields, spoilt) =>
    name === 'queryBalance'
      ? unsignedAnswer(fields)
      : signedAnswer(fields, spoilt ? `not ${key}` : key, dialect.sign)

const PLACES = {
  form: 'the body, as a form',
  json: 'the body, as JSON',
  query: 'the query string',
}

/** Why the merchant cannot be identified. */
function nobody({ params, repeated, from }: Form): RuleRefusal {
  if (repeated.includes('mchId')) return { retCode: 'PARAM_ERROR', retMsg: 'mchId: was given more than once' }
  if (params.mchId) return { retCode: 'MERCHANT_NOT_FOUND', retMsg: 'mchId: no merchant has this number' }
  return {
    retCode: 'PARAM_ERROR',
    retMsg: `mchId: is required; the parameters were looked for in ${PLACES[from]}`,
  }
}

const elsewhere = ({ dialect }: Merchant): RuleRefusal => ({
  retCode: 'PARAM_ERROR',
  retMsg: `the parameters of this merchant travel in ${PLACES[dialect.body]}`,
})

function checkForm({ repeated }: Form, key: string | undefined): RuleRefusal | undefined {
  const [name] = repeated
  if (name !== undefined) {
    // The answer is signed although the caller did not prove to know the key, so it repeats only harmless text.
    const shown = /^\w{1,32}$/.test(name) ? name : 'a parameter'
    return { retCode: 'PARAM_ERROR', retMsg: `${shown}: was given more than once` }
  }
  return key === undefined ? FORGED : undefined
}

function reply({ fields, responseMode }: Said, write: Write): GatewayReply {
  switch (responseMode.kind) {
    case 'plain':
    case 'late':
    case 'after-callback':
      return { status: 200, body: write(fields) }
    case 'bad-signature':
      return { status: 200, body: write(fields, 'spoilt') }
    case 'http-500':
      return { status: 500, body: 'Internal Server Error' }
    case 'unsigned':
      return { status: 200, body: unsignedAnswer(fields) }
    case 'garbage':
      return { status: 200, body: GARBAGE }
    case 'hang':
    case 'reset':
      return responseMode.kind
  }
}
