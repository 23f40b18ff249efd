import { randomUUID } from 'node:crypto'
import { parseBaseUrl } from '../../../src/gateway/base-url.ts'
import type { Dialect } from '../../../src/gateway/dialect/dialect.ts'
import type { TlsFiles } from '../../../src/gateway/transport/connections.ts'
import { createTransport, type Transport } from '../../../src/gateway/transport/transport.ts'
import { reqTimeIn } from '../../../src/gateway/wire/req-time.ts'
import { encode, params } from '../../../src/gateway/wire/request.ts'
import { signature, verify } from '../../../src/gateway/wire/sign.ts'
import { readSignedQuery } from '../../../src/gateway/wire/signed-query.ts'
import { readBody } from '../../../src/gateway/wire/verify-answer.ts'
import type { Clock } from '../../../src/platform/running/clock.ts'
import type { Callbacks } from './callbacks.ts'
import { Differs, NotTried } from './demand.ts'
import { codeOf, type Reply, succeeded, typesIn } from './reply.ts'
import type { Beneficiary, ConformanceWorld } from './world.ts'

export type Operation = keyof Dialect['paths']

/** Parameters of a request by name; a null is left out. */
export type Given = Readonly<Record<string, string | bigint | boolean | null>>

/** An order that the server accepted. */
export type Taken = { mchOrderNo: string; platformNo: string; reply: Reply }

export type SubjectSettings = {
  baseUrl: string
  tls: TlsFiles
  mchId: string
  key: string
  dialect: Dialect
  callbacks: Callbacks
  world: ConformanceWorld | null
  beneficiary: Beneficiary | null
  /** The longest wait for a callback. */
  patienceMs: number
  clock: Clock
}

/** Paise: one rupee, the least of every payin and payout. */
const AMOUNT = 100n

/** The tested server, and the orders that several cases share: each is created when first needed. */
export class Subject {
  readonly #settings: SubjectSettings
  readonly #transport: Transport
  readonly #prefix: string
  readonly #reqTime: (now: number) => string
  readonly #run: string
  #orders = 0

  constructor(settings: SubjectSettings) {
    const { origin, prefix } = parseBaseUrl(settings.baseUrl)
    const { tls, dialect, clock } = settings
    this.#settings = settings
    this.#prefix = prefix
    this.#transport = createTransport({
      origin,
      connections: 1,
      sendTimeoutMs: dialect.sendTimeoutMs,
      tls,
      clock,
    })
    this.#reqTime = reqTimeIn(dialect.reqTimeZone)
    this.#run = randomUUID().replaceAll('-', '').slice(0, 12).toUpperCase()
  }

  get dialect(): Dialect {
    return this.#settings.dialect
  }

  get callbacks(): Callbacks {
    return this.#settings.callbacks
  }

  get patienceMs(): number {
    return this.#settings.patienceMs
  }

  /** Throws NotTried if nobody can make things happen around the server. */
  get world(): ConformanceWorld {
    const { world } = this.#settings
    if (!world) throw new NotTried('nobody pays or declines there')
    return world
  }

  get passTime(): ConformanceWorld['passTime'] {
    return this.#settings.world?.passTime
  }

  /** Throws NotTried if there is no beneficiary. */
  get beneficiary(): Beneficiary {
    const { beneficiary } = this.#settings
    if (!beneficiary) throw new NotTried('no beneficiary was given')
    return beneficiary
  }

  get canBePaid(): boolean {
    return this.#settings.beneficiary !== null
  }

  /** Whether a callback's query string is signed by the server. */
  isSigned(query: string): boolean {
    const { dialect, key } = this.#settings
    return readSignedQuery(query, dialect.sign, key).kind === 'verified'
  }

  /** A number that no order has yet. */
  newOrderNo(): string {
    return `CONF${this.#run}${++this.#orders}`
  }

  /** Every field that a payin needs. */
  payinFields(over: Given = {}): Given {
    return {
      mchId: this.#settings.mchId,
      mchOrderNo: this.newOrderNo(),
      amount: AMOUNT,
      currency: 'INR',
      notifyUrl: this.callbacks.urlOf('success'),
      ...over,
    }
  }

  /** Every field that a payout needs. Throws NotTried if there is no beneficiary. */
  payoutFields(over: Given = {}): Given {
    const { accountName, accountNo, values } = this.beneficiary
    return {
      ...this.payinFields(),
      accountName,
      accountNo,
      accountBankCode: 'BANK',
      extra: JSON.stringify({ value: values[0] }),
      ...over,
    }
  }

  /** Every field that a query of this kind needs except the order's number. */
  queryFields(operation: 'payinQuery' | 'payoutQuery' | 'balance', over: Given = {}): Given {
    const { mchId, clock } = this.#settings
    const kind =
      operation === 'payinQuery' ? { executeNotify: false } : { reqTime: this.#reqTime(clock.now()) }
    return { mchId, ...kind, ...over }
  }

  recoveryFields(payOrderId: string, channelPayNo: string): Given {
    return { mchId: this.#settings.mchId, payOrderId, channelPayNo }
  }

  /**
   * Makes one call, at the dialect's path unless another is given. With `sign` the signature can be a stranger's or
   * missing. Throws Differs if there is no answer.
   */
  async ask(
    operation: Operation,
    given: Given,
    { path = this.dialect.paths[operation], sign = 'good' as 'good' | 'wrong' | 'none' } = {},
  ): Promise<Reply> {
    const { key, dialect } = this.#settings
    const fields = new Map(params(Object.entries(given)))
    const signed = signature(fields, sign === 'wrong' ? `not ${key}` : key, dialect.sign, 'requests')
    if (sign !== 'none') fields.set('sign', signed)
    const sent = await this.#transport.send(encode(fields, this.#prefix + path, dialect.body), () => true)
    if (sent.kind !== 'answered') throw new Differs(`no answer to ${operation}: ${sent.reason}`)
    const { text, fields: answer } = readBody(sent)
    return {
      httpStatus: sent.httpStatus,
      fields: answer ?? new Map(),
      types: answer && text !== null ? typesIn(text, answer) : new Map(),
      sign: answer ? verify(answer, key, dialect.sign, 'answers') : 'unsigned',
    }
  }

  /** A query about an order of ours, by our number. */
  query(operation: 'payinQuery' | 'payoutQuery', mchOrderNo: string, over: Given = {}): Promise<Reply> {
    return this.ask(operation, this.queryFields(operation, { mchOrderNo, ...over }))
  }

  readonly payin = once(() => this.newPayin())
  readonly payout = once(() => this.newPayout())

  readonly paidPayin = once(async () => {
    const { world } = this
    const payin = await this.newPayin()
    await world.pay(payin.platformNo)
    return payin
  })

  readonly declinedPayin = once(async () => {
    const { world } = this
    const payin = await this.newPayin()
    await world.decline(payin.platformNo)
    return payin
  })

  /** A payin paid by a payment that was not reported to the gateway, and its recovery. */
  readonly recoveredPayin = once(async () => {
    const { world } = this
    const payin = await this.newPayin()
    const utr = await world.payUntold(payin.platformNo)
    return {
      ...payin,
      utr,
      reply: await this.ask('payinRecovery', this.recoveryFields(payin.platformNo, utr)),
    }
  })

  readonly failedPayout = once(() => this.newPayout({ accountNo: this.world.failingAccountNo }))

  /** Throws NotTried if the server refuses it: another case reports that. */
  newPayin(over: Given = {}): Promise<Taken> {
    return this.#take('payinCreate', this.payinFields(over), 'payOrderId')
  }

  /** Throws NotTried if the server refuses it: another case reports that. */
  newPayout(over: Given = {}): Promise<Taken> {
    return this.#take('apply', this.payoutFields(over), 'agentpayOrderId')
  }

  async #take(operation: 'payinCreate' | 'apply', given: Given, platformNo: string): Promise<Taken> {
    const reply = await this.ask(operation, given)
    if (!succeeded(reply)) throw new NotTried(`${operation} was refused with ${codeOf(reply)}`)
    return { mchOrderNo: String(given.mchOrderNo), platformNo: reply.fields.get(platformNo) ?? '', reply }
  }

  close(): Promise<void> {
    return this.#transport.close()
  }
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => (made ??= make())
}
