import { parseBaseUrl } from '../../../src/gateway/base-url.ts'
import type { Dialect } from '../../../src/gateway/dialect/dialect.ts'
import type { TlsFiles } from '../../../src/gateway/transport/connections.ts'
import { createTransport } from '../../../src/gateway/transport/transport.ts'
import { encode, type Params } from '../../../src/gateway/wire/request.ts'
import { type AnswerFields, readBody } from '../../../src/gateway/wire/verify-answer.ts'
import type { Clock } from '../../../src/platform/running/clock.ts'

/** Where and how to make a call. */
export type Place = { path: string; body: Dialect['body'] }

/** HTTP 200 and a JSON object with a retCode, whatever its signature. */
export type ProbeAnswer = { kind: 'answer'; retCode: string; fields: AnswerFields }

/**
 * The result of one call. `other` is not an answer of any gateway operation. `silence`: no answer came. `nowhere`
 * (HTTP 404): there is no operation at this path. Both come whatever the signature.
 */
export type ProbeReply = ProbeAnswer | { kind: 'other' | 'silence' | 'nowhere'; what: string }

export type Conversation = {
  ask(place: Place, params: Params, sign: string): Promise<ProbeReply>
  close(): Promise<void>
}

const TIMEOUT_MS = { connect: 5_000, headers: 10_000, body: 10_000 }

/** One call at a time to the server at `baseUrl`, after waiting for `pace`. Throws on a wrong URL. */
export function openConversation(settings: {
  baseUrl: string
  tls: TlsFiles
  clock: Clock
  pace: () => Promise<void>
}): Conversation {
  const { tls, clock, pace } = settings
  const { origin, prefix } = parseBaseUrl(settings.baseUrl)
  const transport = createTransport({ origin, connections: 1, sendTimeoutMs: TIMEOUT_MS, tls, clock })
  return {
    async ask({ path, body }, params, sign) {
      await pace()
      const request = encode(new Map(params).set('sign', sign), prefix + path, body)
      const sent = await transport.send(request, () => true)
      if (sent.kind !== 'answered') return { kind: 'silence', what: sent.reason }
      if (sent.httpStatus === 404) return { kind: 'nowhere', what: 'HTTP 404' }
      if (sent.httpStatus !== 200) return { kind: 'other', what: `HTTP ${sent.httpStatus}` }
      const { fields } = readBody(sent)
      const retCode = fields?.get('retCode')
      return fields && retCode
        ? { kind: 'answer', retCode, fields }
        : { kind: 'other', what: 'an answer without a retCode' }
    },
    close: () => transport.close(),
  }
}
