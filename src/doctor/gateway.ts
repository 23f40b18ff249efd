import type { BalanceAnswer, QueryAnswer } from '../domain/gateway-answers.ts'
import { formatRupees } from '../domain/money.ts'
import { isLoopback } from '../gateway/transport/connections.ts'
import type { Clock } from '../platform/running/clock.ts'
import { checkClock } from './clocks.ts'
import { type Check, type Finding, good, warning, wrong } from './examine.ts'

export type GatewayToCheck = {
  merchantId: string
  baseUrl: string
  balance: () => Promise<BalanceAnswer>
  /** Orders that the gateway confirmed. */
  knownOrders: () => Promise<readonly string[]>
  query: (mchOrderNo: string) => Promise<QueryAnswer>
}

/** For every merchant a balance query and one about orders that must be there, and each gateway's clock once. */
export function gatewayChecks(merchants: readonly GatewayToCheck[], clock: Clock): Check[] {
  const byOrigin = new Map<string, GatewayToCheck>()
  for (const merchant of merchants) {
    const { origin } = new URL(merchant.baseUrl)
    if (!byOrigin.has(origin)) byOrigin.set(origin, merchant)
  }
  return [
    ...merchants.map(({ merchantId, baseUrl, balance }) => ({
      name: `gateway ${merchantId}`,
      run: async () => checkBalance(await balance(), baseUrl),
    })),
    ...merchants.map((merchant) => ({
      name: `orders ${merchant.merchantId}`,
      needs: ['migrations', `gateway ${merchant.merchantId}`],
      run: () => checkOrders(merchant),
    })),
    ...[...byOrigin].map(([origin, { merchantId }]) => ({
      name: `gateway clock ${origin}`,
      needs: [`gateway ${merchantId}`],
      run: () => gatewayClock(origin, clock),
    })),
  ]
}

export function checkBalance(answer: BalanceAnswer, baseUrl: string): Finding {
  if (answer.kind === 'balance') {
    const what = `${baseUrl} answers, ${formatRupees(answer.availableAmount)} available`
    if (new URL(baseUrl).protocol === 'https:' || isLoopback(baseUrl)) return good(what)
    return warning(
      `${what}; over plain http everybody on the way reads bank details, and can answer with what the gateway signed for another order`,
      'connect to the gateway with https',
    )
  }
  const { httpStatus, response, note } = answer.exchange
  const said = response?.retMsg ? `${response.retCode}: ${response.retMsg}` : response?.retCode
  switch (answer.reason) {
    case 'not-sent':
      return wrong(
        `${baseUrl} cannot be reached (${note})`,
        "check that the gateway runs and that payoutd can reach it, or correct the merchant's base URL",
      )
    case 'timeout':
    case 'connection-lost':
      return wrong(
        `${baseUrl} accepts the request but does not answer (${note})`,
        'ask the gateway what is wrong',
      )
    case 'http-status':
      return wrong(
        `${baseUrl} answers HTTP ${httpStatus}`,
        httpStatus === 429 || (httpStatus ?? 0) >= 500
          ? 'ask the gateway what is wrong'
          : "correct the merchant's base URL and its dialect's path of the balance query",
      )
    case 'unparsable':
      return wrong(
        response?.retCode === 'SUCCESS'
          ? `${baseUrl} answers, but with no available amount that can be read (availableAmount: ${response.availableAmount ?? 'missing'})`
          : `${baseUrl} answers, but not with a balance`,
        "correct the merchant's base URL and its dialect's path of the balance query, or ask the gateway what is wrong",
      )
    case 'unsigned':
    case 'bad-signature':
      return wrong(
        `${baseUrl} answers with a wrong signature`,
        "check the merchant's key and the sign rules of its dialect",
      )
    case 'unlisted-code':
      return wrong(
        `${baseUrl} refuses the balance query (${said})`,
        "correct the merchant's mchId, key or dialect: the gateway checks the request with them",
      )
    case 'other-order':
      return wrong(
        `${baseUrl} answers the balance query with a report about an order`,
        'look for a proxy before the gateway that shares or reuses connections, or ask the gateway what is wrong',
      )
    case 'no-order-id':
    case 'lease-ended':
      throw new Error(`a balance query cannot end in ${answer.reason}`)
  }
}

/** Whether queries find what the gateway confirmed: else "not found" proves nothing, and nobody learns that a payout never arrived. */
export async function checkOrders({
  merchantId,
  baseUrl,
  knownOrders,
  query,
}: GatewayToCheck): Promise<Finding> {
  const orders = await knownOrders()
  if (orders.length === 0) return good(`${baseUrl} has confirmed no order of ${merchantId} yet`)
  for (const mchOrderNo of orders) {
    const answer = await query(mchOrderNo)
    if (answer.kind === 'found') return good(`${baseUrl} finds ${mchOrderNo}`)
    if (answer.kind === 'unknown')
      return wrong(
        `${baseUrl} answers a balance query, but none about ${mchOrderNo} (${answer.reason}): what no callback reports stays unknown`,
        `ask the gateway what is wrong: payoutd gateway payout query --merchant ${merchantId} --mch-order-no ${mchOrderNo}`,
      )
  }
  return warning(
    `${baseUrl} confirmed ${orders.join(', ')}, and finds none of them: that it does not find an order therefore proves nothing, and what never arrived stays unknown until its deadline`,
    `ask the gateway whether it finds these orders, and for how long it finds any: payoutd gateway payout query --merchant ${merchantId} --mch-order-no ${orders[0]}`,
  )
}

/** Every web server may send a Date, with any answer. */
async function gatewayClock(origin: string, clock: Clock): Promise<Finding> {
  const before = clock.now()
  const response = await fetch(origin, { method: 'HEAD', redirect: 'manual' }).catch(() => null)
  const after = clock.now()
  const shown = Date.parse(response?.headers.get('date') ?? '')
  if (Number.isNaN(shown)) return good(`${origin} sends no Date header, so payoutd cannot compare the clocks`)
  return checkClock("the gateway's clock", { before, after, shown, resolutionMs: 1_000 })
}
