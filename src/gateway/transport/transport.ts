import type { Dispatcher } from 'undici'
import type { NotSentReason } from '../../domain/gateway-answers.ts'
import type { Clock } from '../../platform/running/clock.ts'
import type { Dialect } from '../dialect/dialect.ts'
import type { WireRequest } from '../wire/request.ts'
import { connectionsTo, type TlsFiles } from './connections.ts'
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
      reason: 'timeout' | 'connection-lost' | 'unparsable'
      code: string
      httpStatus: number | null
      tookMs: number
    }
  | { kind: 'answered'; httpStatus: number; body: Buffer; tookMs: number }

export interface Transport {
  /**
   * POSTs once, over a kept-alive connection: it follows no redirect and never sends again. It calls `mayStillSend` in the tick
   * that hands the bytes to the socket; if that returns false or throws, no byte leaves. Never rejects.
   */
  send(request: WireRequest, mayStillSend: () => boolean): Promise<SentRequest>
  /** Waits for the requests under way; later ones are `not-sent`. */
  close(): Promise<void>
}

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
    send: ({ path, contentType, body }, mayStillSend) =>
      new Promise((resolve) => {
        const conversation = new Conversation(mayStillSend, sendTimeoutMs, clock, resolve)
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
class Conversation implements Dispatcher.DispatchHandler {
  readonly #mayStillSend: () => boolean
  readonly #timeoutMs: Dialect['sendTimeoutMs']
  readonly #clock: Clock
  readonly #resolve: (sent: SentRequest) => void
  readonly #chunks: Buffer[] = []
  #since: number
  #handedOver = false
  #parts = 0
  #answerAt = 0
  #httpStatus: number | null = null

  constructor(
    mayStillSend: () => boolean,
    timeoutMs: Dialect['sendTimeoutMs'],
    clock: Clock,
    resolve: (sent: SentRequest) => void,
  ) {
    this.#mayStillSend = mayStillSend
    this.#timeoutMs = timeoutMs
    this.#clock = clock
    this.#resolve = resolve
    this.#since = clock.monotonic()
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
    this.#resolve({ kind: 'answered', httpStatus: this.#httpStatus ?? 0, body, tookMs: this.#tookMs() })
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
