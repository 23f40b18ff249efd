import { randomUUID } from 'node:crypto'
import { balanceParams } from '../../../src/gateway/calls/balance.ts'
import { payinQueryParams } from '../../../src/gateway/calls/payin-query.ts'
import { queryParams } from '../../../src/gateway/calls/query.ts'
import type { Dialect } from '../../../src/gateway/dialect/dialect.ts'
import { loadDialect } from '../../../src/gateway/dialect/dialect-file.ts'
import type { TlsFiles } from '../../../src/gateway/transport/connections.ts'
import { reqTimeIn } from '../../../src/gateway/wire/req-time.ts'
import type { Params } from '../../../src/gateway/wire/request.ts'
import { readMessage, readSignedAmount } from '../../../src/gateway/wire/values.ts'
import type { Clock } from '../../../src/platform/running/clock.ts'
import {
  type Conversation,
  openConversation,
  type Place,
  type ProbeAnswer,
  type ProbeReply,
} from './conversation.ts'
import { type Findings, findingsOf, type Seen } from './findings.ts'
import { Signing } from './signing.ts'

/**
 * `not-reached`: the first call got no answer. `no-balance`: no known way of asking got the balance, so the
 * merchant number or key is wrong, or the gateway is of another family; `heard` is what it said. `contradiction`:
 * it accepts no request signed the way it signs answers, and no dialect can express that.
 */
export type ProbeOutcome =
  | ({ kind: 'found' } & Findings)
  | { kind: 'not-reached'; reason: string }
  | { kind: 'no-balance'; heard: readonly string[] }
  | { kind: 'contradiction' }

const BODIES: readonly Dialect['body'][] = ['form', 'json', 'query']
/** Gateway contract, "Balance query" and "Query payout order"; the default first. */
const BALANCE_PATHS = ['/api/agentpay/query_balance', '/api/agentpay/query_order'] as const
const PAYOUT_QUERY_PATHS = ['/api/pay/orderquery', '/api/pay/query_order'] as const
const PAYIN_QUERY_PATH = '/api/pay/orderquery'

/** Parameters that the contract does not have. The two sorts put these in different orders. */
const SORTED_APART = [
  ['probe', '1'],
  ['probe1', '1'],
] as const
const EMPTY = [['probe', '']] as const

type ProbeSettings = {
  mchId: string
  key: string
  /** A payout that the gateway has, by either of its numbers. */
  knownOrder: string | null
  clock: Clock
}

/**
 * Finds out which dialect a gateway speaks, with balance calls and queries only: about `knownOrder`, and about an
 * order that does not exist. Settings that only other calls would show keep their defaults. The probe knows no
 * retCode in advance but SUCCESS: it takes a query as understood if the reply differs from the one to a wrong
 * signature. It waits for `pace` before each call. Throws on an invalid base URL.
 */
export async function probe(
  settings: ProbeSettings & { baseUrl: string; tls: TlsFiles; pace: () => Promise<void> },
): Promise<ProbeOutcome> {
  const conversation = openConversation(settings)
  try {
    return await interview(conversation.ask, settings)
  } finally {
    await conversation.close()
  }
}

async function interview(ask: Conversation['ask'], settings: ProbeSettings): Promise<ProbeOutcome> {
  const { mchId, key, knownOrder, clock } = settings
  const formatReqTime = reqTimeIn(loadDialect('default').reqTimeZone)
  const reqTime = () => formatReqTime(clock.now())
  const balance = (extra: readonly (readonly [string, string])[] = []): Params =>
    new Map([...balanceParams(mchId, reqTime()), ...extra])
  const signing = new Signing(ask, key)

  const endpoint = await openEndpoint(signing, balance)
  if ('kind' in endpoint) return endpoint
  await signing.call(endpoint, balance(SORTED_APART), tellsBalance)
  await signing.call(endpoint, balance(EMPTY), tellsBalance)
  const toStranger = await signing.wrongly(endpoint, balance())

  const found = knownOrder === null ? null : await findOrder(signing, endpoint, knownOrder, mchId, reqTime)
  const absentOrder = `PROBE${randomUUID().replaceAll('-', '').slice(0, 25).toUpperCase()}`
  const absentBy = { mchOrderNo: absentOrder }
  const payoutQueries = []
  for (const path of PAYOUT_QUERY_PATHS) {
    payoutQueries.push(await askBoth(signing, { ...endpoint, path }, queryParams(absentBy, mchId, reqTime())))
  }
  const payinQuery = await askBoth(
    signing,
    { ...endpoint, path: PAYIN_QUERY_PATH },
    payinQueryParams(absentBy, mchId, false),
  )

  const { ways } = signing
  if (ways.length === 0) return { kind: 'contradiction' }
  const answering = payoutQueriesAmong(payoutQueries, payinQuery)
  const queries = [...answering, payinQuery]
  const seen: Seen = {
    balance: endpoint,
    balanceIsGuarded: !(toStranger.kind === 'answer' && tellsBalance(toStranger)),
    ways,
    payoutQueryPaths: answering.map(({ path }) => path),
    payinQueryPath: payinQuery.parsed.length > 0 ? payinQuery.path : null,
    knownOrder: knownOrder === null ? 'not-given' : (found ?? 'not-found'),
    failures: queries.flatMap(({ parsed }) => parsed).filter(({ retCode }) => retCode !== 'SUCCESS'),
    toStrangers: [toStranger, ...queries.map(({ stranger }) => stranger)].filter(isAnswer),
  }
  return { kind: 'found', ...findingsOf(seen) }
}

/** The first place that returns the balance, or why there is none. */
async function openEndpoint(signing: Signing, balance: () => Params): Promise<Place | ProbeOutcome> {
  const heard = new Set<string>()
  for (const body of BODIES) {
    for (const path of BALANCE_PATHS) {
      const { answers, replies } = await signing.call({ path, body }, balance(), tellsBalance)
      if (answers.length > 0) return { path, body }
      const [first] = replies
      if (heard.size === 0 && first?.kind === 'silence') return { kind: 'not-reached', reason: first.what }
      for (const reply of replies) heard.add(inWords(reply))
    }
  }
  return { kind: 'no-balance', heard: [...heard] }
}

/** The first path that finds the order by one of its numbers, with the answer; null if none does. */
async function findOrder(
  signing: Signing,
  place: Place,
  order: string,
  mchId: string,
  reqTime: () => string,
): Promise<{ path: string; answer: ProbeAnswer } | null> {
  for (const path of PAYOUT_QUERY_PATHS) {
    for (const by of [{ mchOrderNo: order }, { agentpayOrderId: order }] as const) {
      const [name] = Object.keys(by) as [string]
      const { answers } = await signing.call(
        { ...place, path },
        queryParams(by, mchId, reqTime()),
        ({ retCode, fields }) => retCode === 'SUCCESS' && fields.get(name) === order,
      )
      if (answers[0]) return { path, answer: answers[0] }
    }
  }
  return null
}

type ProbeRequest = { path: string; stranger: ProbeReply; parsed: readonly ProbeAnswer[] }

/**
 * The paths that understood a payout query of an absent order. Payin queries share the first path: if the other
 * path gives the answer to a payin query of an absent order and the first gives another, the first took it for an
 * incomplete payin query.
 */
function payoutQueriesAmong(
  asked: readonly ProbeRequest[],
  payinQuery: ProbeRequest,
): readonly ProbeRequest[] {
  const parsed = asked.filter((each) => each.parsed.length > 0)
  const codeOf = (each: ProbeRequest | undefined) => each?.parsed[0]?.retCode
  const shared = parsed.find(({ path }) => path === PAYIN_QUERY_PATH)
  const other = parsed.find(({ path }) => path !== PAYIN_QUERY_PATH)
  const isPayin =
    shared && other && codeOf(other) === codeOf(payinQuery) && codeOf(shared) !== codeOf(payinQuery)
  return isPayin ? [other] : parsed
}

/** Makes the same call with a wrong signature and with a good one. */
async function askBoth(signing: Signing, place: Place, params: Params): Promise<ProbeRequest> {
  const stranger = await signing.wrongly(place, params)
  const { answers } = await signing.call(place, params, (answer) => isOther(answer, stranger))
  return { path: place.path, stranger, parsed: answers }
}

function isOther(answer: ProbeAnswer, stranger: ProbeReply): boolean {
  if (stranger.kind !== 'answer') return stranger.kind === 'other'
  const compared = ({ retCode, fields }: ProbeAnswer) =>
    JSON.stringify([retCode, fields.get('retMsg') ?? null, Boolean(fields.get('sign'))])
  return compared(answer) !== compared(stranger)
}

const tellsBalance = ({ retCode, fields }: ProbeAnswer): boolean =>
  retCode === 'SUCCESS' && readSignedAmount(fields.get('availableAmount')) !== null

const isAnswer = (reply: ProbeReply): reply is ProbeAnswer => reply.kind === 'answer'

const inWords = (reply: ProbeReply): string =>
  reply.kind === 'answer' ? `retCode ${readMessage(reply.retCode, [])}` : reply.what
