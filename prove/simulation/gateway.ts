import { STANDARD } from '../../devkit/sandbox/wire/dialect.ts'
import { type Signable, sign } from '../../devkit/sandbox/wire/sign.ts'
import type { Instant } from '../../src/domain/instant.ts'
import type { WireRequest } from '../../src/gateway/wire/request.ts'

/** A merchant's account at the gateway. */
export type Account = { mchId: string; key: string; available: bigint }

export type Order = {
  mchId: string
  mchOrderNo: string
  agentpayOrderId: string
  amount: bigint
  /** The beneficiary: account number, IFSC or VPA, name. */
  payee: string
  status: 'processing' | 'success' | 'failed'
  timesPaid: number
  /** Paid, and the money came back: the gateway reports it as failed from then on. */
  returned: boolean
  takenAt: Instant
  /** Queries do not find it before. */
  findableFrom: Instant
  /**
   * The answer was another one, as when a proxy sends a request twice and the first run takes longer. Nothing else is wrong then:
   * queries find it before the grace is over.
   */
  wasDenied: boolean
  endedAt: Instant | null
}

/** The gateway's possible reactions to an apply for a new order. */
export const VERDICTS = [
  'accepts',
  'pays at once',
  'accepts, but shows it to no query for a while',
  'refuses',
  'turns away',
  'breaks down',
  'takes it, and answers what nobody can read',
  'takes it, shows it to no query for a while, and answers what nobody can read',
  'takes it, and answers that it refuses',
  'takes it, and turns away',
] as const
export type CallbackVerdict = (typeof VERDICTS)[number]

/** The code that answers an apply which it takes all the same. */
const DENIALS: Partial<Record<CallbackVerdict, string>> = {
  'takes it, and answers that it refuses': 'IFSC_INVALID',
  'takes it, and turns away': 'TOO_FAST',
}

export type SimulatedReply = { httpStatus: number; body: Buffer }
export type Callback = { mchId: string; mchOrderNo: string; rawQuery: string; said: string }

const STATUS = { processing: '1', success: '2', failed: '3' } as const
export const FEE = 500n
/** Less than the grace. */
const DENIED_FOR_MS = 20_000

/**
 * The gateway as its contract describes it, with true books, at the wire: it takes and gives signed bytes. It
 * shares no code with payoutd's client. Unless it refuses duplicates, it pays one number twice.
 */
export class Gateway {
  readonly accounts: ReadonlyMap<string, Account>
  readonly orders: Order[] = []
  /** Callbacks not answered `success` yet. */
  callbacks: Callback[] = []
  /** Every end of an order that it reported, signed: `PORDER success`. */
  readonly said = new Set<string>()
  /** Order numbers that it refused for good. */
  readonly refused = new Set<string>()
  /** Until then queries find no order at all, whatever it has. */
  blindUntil: Instant = 0
  /** Order numbers with an apply that the balance did not cover. */
  readonly overdrawn = new Set<string>()
  /** Its reactions to the next applies, one after the other; then it accepts. */
  readonly verdicts: CallbackVerdict[] = []
  #given = 0
  readonly #refusesDuplicates: boolean
  readonly #hiddenForMs: number

  constructor(accounts: readonly Account[], rules: { refusesDuplicates: boolean; hiddenForMs: number }) {
    this.accounts = new Map(accounts.map((account) => [account.mchId, account]))
    this.#refusesDuplicates = rules.refusesDuplicates
    this.#hiddenForMs = rules.hiddenForMs
  }

  of(mchId: string, mchOrderNo: string | null): Order[] {
    return this.orders.filter((order) => order.mchId === mchId && order.mchOrderNo === mchOrderNo)
  }

  /** Receives a request, and returns its reaction. */
  take({ path, body }: WireRequest, now: Instant): { reply: SimulatedReply; what: string } {
    const params = Object.fromEntries(new URLSearchParams(body))
    const account = this.accounts.get(params.mchId ?? '')
    if (!account || sign(params, account.key, STANDARD.sign, 'requests') !== params.sign) {
      return { reply: answer(account, { retCode: 'SIGN_ERROR' }), what: 'does not know the signature' }
    }
    if (path.endsWith('/agentpay/apply')) return this.#apply(account, params, now)
    if (path.endsWith('/query_balance')) return this.#balance(account)
    return this.#query(account, params, now)
  }

  #apply(
    account: Account,
    params: Record<string, string>,
    now: Instant,
  ): { reply: SimulatedReply; what: string } {
    const { mchOrderNo = '', amount = '' } = params
    const fails = (retCode: string) => ({ reply: answer(account, { retCode, retMsg: 'no' }), what: retCode })
    if (this.#refusesDuplicates && this.of(account.mchId, mchOrderNo).length > 0)
      return fails('DUPLICATE_ORDER')
    const verdict = this.verdicts.shift() ?? 'accepts'
    if (this.refused.has(mchOrderNo) || verdict === 'refuses') {
      this.refused.add(mchOrderNo)
      return fails('IFSC_INVALID')
    }
    if (verdict === 'turns away') return fails('TOO_FAST')
    if (verdict === 'breaks down') return { reply: { httpStatus: 502, body: Buffer.alloc(0) }, what: verdict }
    const cost = BigInt(amount) + FEE
    if (cost > account.available) {
      this.overdrawn.add(mchOrderNo)
      return fails('BALANCE_SHORT')
    }
    account.available -= cost
    const denial = DENIALS[verdict]
    const order: Order = {
      mchId: account.mchId,
      mchOrderNo,
      agentpayOrderId: `AP${++this.#given}`,
      amount: BigInt(amount),
      payee: payeeOf(params),
      status: 'processing',
      timesPaid: 0,
      returned: false,
      takenAt: now,
      findableFrom:
        now + (denial ? DENIED_FOR_MS : verdict.includes('shows it to no query') ? this.#hiddenForMs : 0),
      wasDenied: denial !== undefined,
      endedAt: null,
    }
    this.orders.push(order)
    if (verdict === 'pays at once') this.end(order, 'success', now)
    if (denial) return fails(denial)
    if (verdict.startsWith('takes it'))
      return { reply: { httpStatus: 200, body: Buffer.from('<html>') }, what: verdict }
    const { agentpayOrderId, status } = order
    const fields = { retCode: 'SUCCESS', agentpayOrderId, fee: String(FEE), status: STATUS[status] }
    return { reply: answer(account, fields), what: verdict }
  }

  #query(
    account: Account,
    params: Record<string, string>,
    now: Instant,
  ): { reply: SimulatedReply; what: string } {
    const order = this.of(account.mchId, params.mchOrderNo ?? '').findLast(
      ({ findableFrom, wasDenied }) => findableFrom <= now && (wasDenied || this.blindUntil <= now),
    )
    if (!order) return { reply: answer(account, { retCode: 'ORDER_NOT_FOUND' }), what: 'does not find it' }
    this.#says(order)
    return {
      reply: answer(account, { retCode: 'SUCCESS', ...reportOf(order) }),
      what: `says ${order.status}`,
    }
  }

  #balance(account: Account): { reply: SimulatedReply; what: string } {
    const available = String(account.available)
    const fields = { amount: available, frozenAmount: '0', pendingAmount: '0', unsettledAmount: '0' }
    const reply = answer(account, { retCode: 'SUCCESS', ...fields, availableAmount: available })
    return { reply, what: `has ${available} paise` }
  }

  end(order: Order, status: 'success' | 'failed', now: Instant): void {
    if (status === 'success') order.timesPaid++
    else (this.accounts.get(order.mchId) as Account).available += order.amount + FEE
    order.status = status
    order.endedAt = now
    this.#says(order)
    this.callbacks.push(this.callbackAbout(order, reportOf(order)))
  }

  /** An order that was paid some time ago. */
  paidBefore(mchId: string, mchOrderNo: string, now: Instant): Order {
    return {
      ...{ mchId, mchOrderNo, agentpayOrderId: mchOrderNo, amount: 100n, payee: '', status: 'success' },
      ...{ timesPaid: 1, returned: false, takenAt: now, findableFrom: now, wasDenied: false, endedAt: now },
    }
  }

  /** A payer pays into the account. */
  fund(mchId: string, amount: bigint): void {
    ;(this.accounts.get(mchId) as Account).available += amount
  }

  /** A paid order's money comes back. */
  giveBack(order: Order, now: Instant): void {
    order.returned = true
    this.end(order, 'failed', now)
  }

  /** A callback with these fields, signed with the account's key, or with another one. */
  callbackAbout(
    order: Pick<Order, 'mchId' | 'mchOrderNo'>,
    fields: Record<string, string>,
    key?: string,
  ): Callback {
    const { mchId, mchOrderNo } = order
    const account = this.accounts.get(mchId) as Account
    const signed = { ...fields, sign: sign(fields, key ?? account.key, STANDARD.sign, 'callbacks') }
    const rawQuery = Object.entries(signed)
      .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
      .join('&')
    return { mchId, mchOrderNo, rawQuery, said: `status ${fields.status}, ${fields.amount} paise` }
  }

  #says({ mchOrderNo, status }: Order): void {
    if (status !== 'processing') this.said.add(`${mchOrderNo} ${status}`)
  }
}

/** The payee of a request or a command. */
export const payeeOf = (fields: {
  accountNo?: string
  accountName?: string | null
  extra?: string
}): string =>
  [fields.accountNo, fields.accountName ?? '', JSON.parse(fields.extra ?? '{}').value ?? ''].join(' / ')

type Reported = Pick<Order, 'mchOrderNo' | 'agentpayOrderId' | 'amount' | 'status'>

export const reportOf = (order: Reported): Record<string, string> => ({
  mchOrderNo: order.mchOrderNo,
  agentpayOrderId: order.agentpayOrderId,
  amount: String(order.amount),
  fee: String(FEE),
  status: STATUS[order.status],
  ...(order.status === 'success' && { channelPayNo: utrOf(order) }),
  ...(order.status === 'failed' && { errorMessage: 'account closed' }),
})

const utrOf = (order: Reported): string => `6326112${order.agentpayOrderId.slice(2).padStart(5, '0')}`

function answer(account: Account | undefined, fields: Signable): SimulatedReply {
  const signed = account ? { ...fields, sign: sign(fields, account.key, STANDARD.sign, 'answers') } : fields
  return { httpStatus: 200, body: Buffer.from(JSON.stringify(signed)) }
}
