import type { Dispatcher } from 'undici'
import type { NotSentReason } from '../../domain/gateway-answers.ts'
import type { Clock } from '../../platform/running/clock.ts'
import type { Dialect } from '../dialect/dialect.ts'
import type { WireRequest } from '../wire/request.ts'
import { connectionsTo, type TlsFiles } from './connections.ts'
import type { Conversation, OneConnection } from './one-connection.ts'
import {
  AnswerInTooManyParts,
  AnswerTooSlow,
  codeOf,
  LeaseCheckFailed,
  LeaseEnded,
  whyNoAnswer,
  whyNotSent,
} from './send-failure.ts'

/**
 * The result of one request. `not-sent` proves that no byte of it left; after `lost` nobody knows whether it arrived. `tookMs`
 * counts from the moment the bytes were handed over (for `not-sent`, from the call); `code` is the error's code, safe to show.
 */
export type SentRequest =
  | { kind: 'not-sent'; reason: NotSentReason; code: string; tookMs: number }
  | {
      kind: 'lost'
      reason: 'timeout' | 'connection-lost' | 'unparsable' | 'other-order'
      code: string
      httpStatus: number | null
      tookMs: number
    }
  | { kind: 'answered'; httpStatus: number; body: Buffer; tookMs: number }

export interface Transport {
  /**
   * POSTs once, over a kept-alive connection: it follows no redirect and never sends again. It calls `mayStillSend` in the tick
   * that hands the bytes to the socket; if that returns false or throws, no byte leaves. Never rejects.
   *
   * An answer that comes twice, or without a request, would be taken for the answer to the next request on that connection. So a
   * connection is used again only if `belongs` says that the answer is this request's, beyond doubt; an answer that is another
   * request's is `lost`.
   */
  send(request: WireRequest, mayStillSend: () => boolean, belongs?: Belongs): Promise<SentRequest>
  /** Waits for the requests under way; later ones are `not-sent`. */
  close(): Promise<void>
}

/** `ours`: nothing else has this answer. `perhaps`: it names nothing, so it may be the answer to another request. */
export type Belongs = (answer: AnsweredRequest) => 'ours' | 'perhaps' | 'not-ours'

type AnsweredRequest = Extract<SentRequest, { kind: 'answered' }>

const always: Belongs = () => 'ours'

/** Sends over at most `connections` to `origin`, one request at a time on each (`connections.ts`). */
export function createTransport(options: {
  origin: string
  connections: number
  sendTimeoutMs: Dialect['sendTimeoutMs']
  tls: TlsFiles
  clock: Clock
}): Transport {
  const { origin, sendTimeoutMs, clock } = options
  const connections = connectionsTo(origin, options.connections, sendTimeoutMs, options.tls)
  let closed: Promise<void> | undefined
  return {
    send: ({ path, contentType, body }, mayStillSend, belongs = always) =>
      new Promise((resolve) => {
        const conversation = new Exchanged(mayStillSend, belongs, sendTimeoutMs, clock, resolve)
        connections.dispatch(
          {
            origin,
            path,
            method: 'POST',
            headers: ['content-type', contentType, 'accept', 'application/json'],
            body,
          },
          conversation,
        )
      }),
    close: () => (closed ??= connections.close()),
  }
}

/** The most interim responses and body chunks of one answer: each costs a turn through undici, however few bytes it has. */
const MOST_PARTS = 200

/**
 * Follows one request through undici. It relies on this (undici 8, `lib/dispatcher/client-h1.js`, writeH1): undici calls
 * onRequestStart in the same tick as, and just before, it writes the request to an open socket; if that throws, it writes
 * nothing. So a failure before onRequestStart returns proves that no byte left, and a failure after it proves nothing.
 * `transport.test.ts` checks this with real servers.
 */
class Exchanged implements Conversation {
  readonly #mayStillSend: () => boolean
  readonly #belongs: Belongs
  readonly #timeoutMs: Dialect['sendTimeoutMs']
  readonly #clock: Clock
  readonly #resolve: (sent: SentRequest) => void
  readonly #chunks: Buffer[] = []
  #since: number
  #handedOver = false
  #parts = 0
  #answerAt = 0
  #httpStatus: number | null = null
  #connection: OneConnection | undefined

  constructor(
    mayStillSend: () => boolean,
    belongs: Belongs,
    timeoutMs: Dialect['sendTimeoutMs'],
    clock: Clock,
    resolve: (sent: SentRequest) => void,
  ) {
    this.#mayStillSend = mayStillSend
    this.#belongs = belongs
    this.#timeoutMs = timeoutMs
    this.#clock = clock
    this.#resolve = resolve
    this.#since = clock.monotonic()
  }

  on(connection: OneConnection): void {
    this.#connection = connection
  }

  onRequestStart(): void {
    if (!this.#leaseHolds()) throw new LeaseEnded()
    this.#since = this.#clock.monotonic()
    this.#handedOver = true
  }

  /** Also called for each 1xx, which restarts undici's timeout for the headers. */
  onResponseStart(_controller: Dispatcher.DispatchController, httpStatus: number): void {
    this.#countPart()
    this.#answerAt = this.#clock.monotonic()
    const interim = httpStatus < 200
    if (interim && this.#answerAt - this.#since > this.#timeoutMs.headers) throw new AnswerTooSlow()
    if (!interim) this.#httpStatus = httpStatus
  }

  /** undici's timeout for the body counts from chunk to chunk, and a dripping body never pauses for long. */
  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#countPart()
    if (this.#clock.monotonic() - this.#answerAt > this.#timeoutMs.body) throw new AnswerTooSlow()
    this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    const body = Buffer.concat(this.#chunks)
    const httpStatus = this.#httpStatus ?? 0
    const answer = { kind: 'answered', httpStatus, body, tookMs: this.#tookMs() } as const
    const whose = this.#belongs(answer)
    if (whose !== 'ours') this.#connection?.end()
    const { tookMs } = answer
    this.#resolve(
      whose === 'not-ours'
        ? { kind: 'lost', reason: 'other-order', code: 'ANSWER_OF_ANOTHER', httpStatus, tookMs }
        : answer,
    )
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const said = { code: codeOf(error), tookMs: this.#tookMs() }
    this.#resolve(
      this.#handedOver
        ? { kind: 'lost', reason: whyNoAnswer(error), httpStatus: this.#httpStatus, ...said }
        : { kind: 'not-sent', reason: whyNotSent(error), ...said },
    )
  }

  #countPart(): void {
    if (++this.#parts > MOST_PARTS) throw new AnswerInTooManyParts()
  }

  #leaseHolds(): boolean {
    try {
      return this.#mayStillSend()
    } catch (cause) {
      throw new LeaseCheckFailed('mayStillSend threw', { cause })
    }
  }

  #tookMs(): number {
    return Math.round(this.#clock.monotonic() - this.#since)
  }
}
