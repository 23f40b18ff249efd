import { EventEmitter, once } from 'node:events'
import { readingsOf } from '../../../src/gateway/wire/signed-query.ts'
import { createHttpServer, listen } from '../../../src/platform/http.ts'
import type { Clock, Instant } from '../../../src/platform/running/clock.ts'
import { withoutLastSlashes } from '../../../src/text/text.ts'

/** One callback as received. `query` is the query string without the "?". */
export type Arrived = { at: Instant; method: string; query: string; body: string }

/** How the endpoint answers callbacks: with the word that ends them, or with a refusal. */
export type Manner = 'success' | 'refused'

/** An endpoint for callbacks that keeps all of them. */
export interface Callbacks {
  /** The notifyUrl for orders whose callbacks get this answer. */
  urlOf(mode: Manner): string
  about(mchOrderNo: string): readonly Arrived[]
  /** Resolves with an order's callbacks once there are `count`, or with fewer after `patienceMs`. */
  wait(mchOrderNo: string, count: number, patienceMs: number): Promise<readonly Arrived[]>
  close(): Promise<void>
}

/** `url` is how the server reaches this endpoint, if it differs from the listening address. */
export async function openCallbacks(settings: {
  port: number
  url: string | null
  clock: Clock
}): Promise<Callbacks> {
  const { port, url, clock } = settings
  const arrived: Arrived[] = []
  const news = new EventEmitter()
  const server = createHttpServer()
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
  server.route<{ Params: { mode: string }; Body: string | undefined }>({
    method: ['GET', 'POST'],
    url: '/conformance/:manner',
    handler: async ({ params, raw, method, body }, reply) => {
      const query = raw.url?.split('?', 2)[1] ?? ''
      arrived.push({ at: clock.now(), method, query, body: body ?? '' })
      news.emit('arrived')
      const refused = params.mode !== 'success'
      return reply
        .code(refused ? 500 : 200)
        .type('text/plain')
        .send(refused ? 'refused' : 'success')
    },
  })
  const address = await listen(server, { host: url === null ? '127.0.0.1' : '0.0.0.0', port })
  const about = (mchOrderNo: string) =>
    arrived.filter(({ query }) => parametersOf(query)?.get('mchOrderNo') === mchOrderNo)
  return {
    urlOf: (mode) => `${withoutLastSlashes(url ?? address)}/conformance/${mode}`,
    about,
    async wait(mchOrderNo, count, patienceMs) {
      const signal = AbortSignal.timeout(patienceMs)
      while (about(mchOrderNo).length < count && !signal.aborted) {
        await once(news, 'arrived', { signal }).catch((error: unknown) => {
          if (!signal.aborted) throw error
        })
      }
      return about(mchOrderNo)
    },
    close: () => server.close(),
  }
}

/** The parameters of a query string; null if it cannot be decoded. */
export function parametersOf(query: string): ReadonlyMap<string, string> | null {
  const [first] = readingsOf(query)
  return typeof first === 'object' ? first : null
}
