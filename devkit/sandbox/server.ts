import type { Socket } from 'node:net'
import { createHttpServer, type HttpServer } from '../../src/platform/http.ts'
import type { Logger } from '../../src/platform/log.ts'
import type { Gateway } from './gateway.ts'
import { type Form, parseForm, parseJson, UnreadableForm } from './wire/form.ts'

/** A client that never gives up must not keep a connection for ever. */
const LONGEST_HANG_MS = 300_000

const WRONG_TYPE =
  'the content-type must be application/x-www-form-urlencoded or application/json, as the dialect says'

/** The sandbox's HTTP server, not listening yet: a POST to any path without a page may be an operation. */
export function createSandboxServer(gateway: Gateway, log: Logger): HttpServer {
  const server = createHttpServer()
  const hanging = new Set<Socket>()
  server.removeAllContentTypeParsers()
  server.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    async (_request: unknown, body: string) => parseForm(body, 'form'),
  )
  server.addContentTypeParser(
    'application/json',
    { parseAs: 'string' },
    async (_request: unknown, body: string) => parseJson(body),
  )
  server.setErrorHandler<Error & { statusCode?: number }>((error, _request, reply) => {
    const { statusCode, message } = error
    if (statusCode) {
      const retMsg = statusCode === 415 ? WRONG_TYPE : message
      return reply.code(statusCode).send({ retCode: 'PARAM_ERROR', retMsg, sign: '' })
    }
    log.error({ err: error }, 'a request failed')
    return reply.code(500).send({ retCode: 'SYSTEM_ERROR', retMsg: 'see the log of the sandbox', sign: '' })
  })
  server.post<{ Body: Form | undefined }>('*', async (request, reply) => {
    const [path = ''] = request.url.split('?', 1)
    const answer = await gateway.answer(path, formOf(request))
    if (answer === undefined) return reply.callNotFound()
    if (typeof answer === 'object') {
      return reply
        .code(answer.status)
        .header(
          'content-type',
          answer.body.startsWith('{') ? 'application/json; charset=utf-8' : 'text/plain',
        )
        .send(answer.body)
    }
    reply.hijack()
    if (answer === 'reset') request.raw.socket.resetAndDestroy()
    else hang(request.raw.socket, hanging)
    return undefined
  })
  server.addHook('preClose', async () => {
    for (const socket of hanging) socket.destroy()
  })
  return server
}

/** The parameters in a request's body, or in the query string if they come there. */
function formOf({ body, url }: { body: Form | undefined; url: string }): Form {
  const query = url.indexOf('?')
  if (query === -1) return body ?? parseForm('', 'form')
  if (body && !isEmpty(body)) throw new UnreadableForm('parameters came in the body and in the query string')
  return parseForm(url.slice(query + 1), 'query')
}

const isEmpty = ({ params, repeated }: Form): boolean =>
  Object.keys(params).length === 0 && repeated.length === 0

/** Keeps a connection without an answer until the client gives up, or the sandbox stops. */
function hang(socket: Socket, hanging: Set<Socket>): void {
  hanging.add(socket)
  socket.once('close', () => hanging.delete(socket))
  socket.setTimeout(LONGEST_HANG_MS, () => socket.destroy())
}
