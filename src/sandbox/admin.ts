import { z } from 'zod'
import type { HttpServer } from '../platform/http.ts'
import type { DrivenClock } from './driven-clock.ts'
import { type Faults, faultJson } from './faults.ts'
import { faults as faultsIn, merchantJson } from './merchant-file.ts'
import type { Merchants } from './merchants.ts'
import type { Store } from './store.ts'

type Parts = { store: Store; merchants: Merchants; faults: Faults; clock: DrivenClock }

const YEAR_MS = 366 * 86_400_000
const advanceJson = z.strictObject({ advanceMs: z.int().min(0).max(YEAR_MS) })

/** What whoever runs the sandbox may change while it runs, in JSON. */
export function addAdminRoutes(server: HttpServer, { store, merchants, faults, clock }: Parts): void {
  server.register((admin, _options, done) => {
    admin.removeContentTypeParser('application/json')
    admin.addContentTypeParser(
      'application/json',
      { parseAs: 'string' },
      admin.getDefaultJsonParser('error', 'error'),
    )
    admin.setErrorHandler<Error & { statusCode?: number }>((error, _request, reply) =>
      reply.code(error.statusCode ?? 500).send({ error: error.message }),
    )

    admin.post('/_sandbox/merchants', async (request, reply) => {
      const wanted = merchantJson.safeParse(request.body)
      if (!wanted.success) return reply.code(400).send({ error: faultsIn(wanted.error) })
      const found = merchants.put(wanted.data)
      await store.committed()
      return reply.code(found === 'new' ? 201 : 200).send({ mchId: wanted.data.mchId })
    })

    admin.post('/_sandbox/faults', async (request, reply) => {
      const wanted = faultJson.safeParse(request.body)
      if (!wanted.success) return reply.code(400).send({ error: faultsIn(wanted.error) })
      faults.add(wanted.data)
      return reply.code(201).send(wanted.data)
    })
    admin.get('/_sandbox/faults', async () => faults.list())
    admin.delete('/_sandbox/faults', async (_request, reply) => {
      faults.clear()
      return reply.code(204).send()
    })

    admin.post('/_sandbox/clock', async (request, reply) => {
      const wanted = advanceJson.safeParse(request.body)
      if (!wanted.success) return reply.code(400).send({ error: faultsIn(wanted.error) })
      clock.advance(wanted.data.advanceMs)
      await store.committed()
      return { now: clock.now() }
    })
    done()
  })
}
