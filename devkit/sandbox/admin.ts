import { z } from 'zod'
import type { HttpServer } from '../../src/platform/http.ts'
import type { DrivenClock } from './driven-clock.ts'
import { type Faults, faultJson } from './faults.ts'
import { merchantJson } from './state/merchant-file.ts'
import type { Merchants } from './state/merchants.ts'
import type { Store } from './state/store.ts'
import { type Given, readGiven } from './wire/json-faults.ts'

type AdminParts = { store: Store; merchants: Merchants; faults: Faults; clock: DrivenClock }

const YEAR_MS = 366 * 86_400_000
const NOT_JSON = 'the body must be JSON, with the header content-type: application/json'
const advanceJson = z.strictObject({ advanceMs: z.int().min(0).max(YEAR_MS) })

/** What a person may change while the sandbox runs, in JSON. */
export function addAdminRoutes(server: HttpServer, { store, merchants, faults, clock }: AdminParts): void {
  server.register((admin, _options, done) => {
    admin.removeAllContentTypeParsers()
    admin.addContentTypeParser(
      'application/json',
      { parseAs: 'string' },
      admin.getDefaultJsonParser('error', 'error'),
    )
    admin.setErrorHandler<Error & { statusCode?: number }>((error, _request, reply) => {
      const { statusCode = 500, message } = error
      const isUnread = statusCode === 400 || statusCode === 415
      return reply.code(statusCode).send({ error: isUnread ? NOT_JSON : message })
    })

    admin.post('/_sandbox/merchants', async (request, reply) => {
      const wanted = readBody(merchantJson, request)
      if (!wanted.ok) return reply.code(400).send({ error: wanted.faults })
      const found = merchants.put(wanted.value)
      await store.committed()
      return reply.code(found === 'new' ? 201 : 200).send({ mchId: wanted.value.mchId })
    })

    admin.post('/_sandbox/faults', async (request, reply) => {
      const wanted = readBody(faultJson, request)
      if (!wanted.ok) return reply.code(400).send({ error: wanted.faults })
      faults.add(wanted.value)
      return reply.code(201).send(wanted.value)
    })
    admin.get('/_sandbox/faults', async () => faults.list())
    admin.delete('/_sandbox/faults', async (_request, reply) => {
      faults.clear()
      return reply.code(204).send()
    })

    admin.post('/_sandbox/clock', async (request, reply) => {
      const wanted = readBody(advanceJson, request)
      if (!wanted.ok) return reply.code(400).send({ error: wanted.faults })
      clock.advance(wanted.value.advanceMs)
      await store.committed()
      return { now: clock.now() }
    })
    done()
  })
}

const readBody = <T>(schema: z.ZodType<T>, { body }: { body?: unknown }): Given<T> =>
  body === undefined ? { ok: false, faults: NOT_JSON } : readGiven(schema, body)
