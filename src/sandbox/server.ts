import type { Socket } from 'node:net'
import { createHttpServer, type HttpServer } from '../platform/http.ts'
import type { Logger } from '../platform/log.ts'
import { type Form, parseForm } from './form.ts'
import type { Gateway, Reply } from './gateway.ts'

/** A client that never gives up must not keep a connection for ever. */
const LONGEST_HANG_MS = 300_000

const PATHS = {
  apply: ['/api/agentpay/apply'],
  queryPayout: ['/api/pay/orderquery', '/api/pay/query_order'],
  queryBalance: ['/api/agentpay/query_balance', '/api/agentpay/query_order'],
} as const

/** The sandbox's HTTP server, not listening yet: the contract's operations, each on every path it has. */
export function createSandboxServer(gateway: Gateway, log: Logger): HttpServer {
  const server = createHttpServer()
  const hanging = new Set<Socket>()
  server.removeAllContentTypeParsers()
  server.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    (_request, body, done) => done(null, parseForm(body as string)),
  )
  server.setErrorHandler<Error & { statusCode?: number }>((error, _request, reply) => {
    const { statusCode, message } = error
    if (statusCode) return reply.code(statusCode).send({ retCode: 'PARAM_ERROR', retMsg: message, sign: '' })
    log.error({ err: error }, 'a request failed')
    return reply.code(500).send({ retCode: 'SYSTEM_ERROR', retMsg: 'see the log of the sandbox', sign: '' })
  })
  for (const operation of ['apply', 'queryPayout', 'queryBalance'] as const) {
    for (const path of PATHS[operation]) {
      server.post<{ Body: Form | undefined }>(path, async (request, reply) => {
        const answer: Reply = await gateway[operation](request.body ?? { params: {}, repeated: [] })
        if (typeof answer === 'object') {
          return reply
            .code(answer.status)
            .header('content-type', answer.status === 200 ? 'application/json; charset=utf-8' : 'text/plain')
            .send(answer.body)
        }
        reply.hijack()
        if (answer === 'reset') request.raw.socket.resetAndDestroy()
        else hang(request.raw.socket, hanging)
        return undefined
      })
    }
  }
  server.addHook('preClose', async () => {
    for (const socket of hanging) socket.destroy()
  })
  return server
}

/** Keeps a connection without an answer until the client gives up, or the sandbox stops. */
function hang(socket: Socket, hanging: Set<Socket>): void {
  hanging.add(socket)
  socket.once('close', () => hanging.delete(socket))
  socket.setTimeout(LONGEST_HANG_MS, () => socket.destroy())
}
