import { isIdentifier } from '../../domain/commands/validate.ts'
import type { HttpServer } from '../../platform/http.ts'
import type { Counter } from '../../platform/metrics.ts'
import { orderNoIn } from '../wire/signed-query.ts'
import type { ParsedCallback } from './callback.ts'

/** Parses and verifies the raw query string of a merchant's callback. */
export type CallbackReader<Report> = (rawQuery: string) => ParsedCallback<Report>

export type CallbackRoute<Report> = {
  /** Contains `:merchantId`, because a payout's callback does not name its merchant. */
  url: string
  /** By merchant. */
  readers: ReadonlyMap<string, CallbackReader<Report>>
  /** Resolves, once the report is committed or cannot be, to whether it is. */
  store: (merchantId: string, report: Report) => Promise<boolean>
  /** Keeps a callback for a merchant without settings, about an order that the ledger has. */
  keep: (callback: { merchantId: string; orderNo: string; rawQuery: string }) => Promise<CallbackKeeping>
  answered: Counter<'merchant' | 'answer'>
}

export type CallbackKeeping = 'kept' | 'unknown-order' | 'no-room' | 'not-stored'

/** Refuses callbacks beyond this many unanswered ones: the gateway sends them again. */
const MOST_WAITING = 5_000
/**
 * The same of one merchant, for payouts and payins each: together less than half of the connections of the port. Where its rows
 * are locked, its callbacks leave room for those of others.
 */
const MOST_OF_ONE = 500
/** The same of those for merchants that are in no settings: anybody can send them. */
const MOST_STRANGERS = 4

/**
 * Receives callbacks at a URL: POST and GET, parameters in the query string (gateway contract, "Events"). Answers `success` only
 * if the callback is stored. Bad signature 401, unknown merchant 404, store down or too many at once 503. Returns a function that
 * accepts a callback of a merchant in the settings without HTTP, and resolves to whether it is stored.
 */
export function receiveCallbacks<Report>(
  server: HttpServer,
  { url, readers, store, keep, answered }: CallbackRoute<Report>,
): (merchantId: string, rawQuery: string) => Promise<boolean> {
  let inHand = 0
  const ofOne = new Map<string, number>()
  const inHandOf = (merchantId: string): number => ofOne.get(merchantId) ?? 0
  const count = (merchantId: string, more: 1 | -1): void => {
    inHand += more
    ofOne.set(merchantId, inHandOf(merchantId) + more)
  }
  let strangersInHand = 0

  async function answerStranger(merchantId: string, rawQuery: string): Promise<CallbackAnswer> {
    const orderNo = isIdentifier(merchantId) ? orderNoIn(rawQuery) : null
    if (orderNo === null) return KEEPING['unknown-order']
    if (strangersInHand >= MOST_STRANGERS) return BUSY
    strangersInHand++
    try {
      return KEEPING[await keep({ merchantId, orderNo, rawQuery })]
    } finally {
      strangersInHand--
    }
  }

  async function answer(merchantId: string, rawQuery: string): Promise<CallbackAnswer> {
    const read = readers.get(merchantId)
    if (!read) return answerStranger(merchantId, rawQuery)
    if (inHand >= MOST_WAITING || inHandOf(merchantId) >= MOST_OF_ONE) return BUSY
    const verdict = read(rawQuery)
    if (verdict.kind === 'bad-signature') return { status: 401, text: 'bad signature' }
    if (verdict.kind === 'malformed') return { status: 400, text: `malformed: ${verdict.why}` }
    count(merchantId, 1)
    try {
      const stored = await store(merchantId, verdict.report)
      return stored ? KEEPING.kept : KEEPING['not-stored']
    } finally {
      count(merchantId, -1)
    }
  }

  server.register((scope, _options, done) => {
    // The signature does not cover the body. Some clients name a content type, of any kind, without a body (Hutool, PHP's curl).
    scope.removeAllContentTypeParsers()
    scope.addHook('onRequest', async ({ raw }) => {
      delete raw.headers['content-type']
    })
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, _body, passOver) => passOver(null))
    scope.route<{ Params: { merchantId: string } }>({
      method: ['GET', 'POST'],
      url,
      handler: async (request, reply) => {
        const { merchantId } = request.params
        const rawQuery = queryOf(request.raw.url ?? '')
        const { status, text } = await answer(merchantId, rawQuery)
        const known = readers.has(merchantId) ? merchantId : 'unknown'
        answered.inc({ merchant: known, answer: String(status) })
        return reply.code(status).type('text/plain').send(text)
      },
    })
    done()
  })

  return async (merchantId, rawQuery) =>
    readers.has(merchantId) && (await answer(merchantId, rawQuery)).status === 200
}

/** Everything after the first `?`; a value may contain another `?` unescaped (RFC 3986, section 3.4). */
function queryOf(url: string): string {
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark + 1)
}

type CallbackAnswer = { status: number; text: string }

const BUSY: CallbackAnswer = { status: 503, text: 'busy, come again' }
const KEEPING: Record<CallbackKeeping, CallbackAnswer> = {
  kept: { status: 200, text: 'success' },
  'unknown-order': { status: 404, text: 'unknown merchant' },
  'no-room': { status: 503, text: 'no room, come again' },
  'not-stored': { status: 503, text: 'not stored, come again' },
}
