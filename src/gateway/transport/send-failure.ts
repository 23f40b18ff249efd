import { errors } from 'undici'
import type { NotSentReason } from '../../domain/gateway-answers.ts'

/** Thrown in the moment before the bytes would be handed over. */
export class LeaseEnded extends Error {
  readonly code = 'LEASE_ENDED'
}

/** Thrown in that moment where nobody could say whether the request may still be sent. */
export class LeaseCheckFailed extends Error {
  readonly code = 'LEASE_CHECK_FAILED'
}

/** Thrown when an answer comes so slowly, byte by byte, that no pause in it is a timeout. */
export class AnswerTooSlow extends Error {
  readonly code = 'ANSWER_TOO_SLOW'
}

/** Thrown when an answer comes in so many pieces that reading it keeps everything else waiting. */
export class AnswerInTooManyParts extends Error {
  readonly code = 'ANSWER_IN_TOO_MANY_PARTS'
}

/** The code that Node or undici gave an error, or the name of its class. Holds nothing of what was sent. */
export const codeOf = (error: Error): string =>
  'code' in error && typeof error.code === 'string' ? error.code : error.name

/** What kept a request from leaving, by the error that came before its bytes were handed over. */
export function whyNotSent(error: Error): NotSentReason {
  if (error instanceof LeaseEnded) return 'lease-ended'
  if (error instanceof LeaseCheckFailed) return 'lease-check-failed'
  if (error instanceof errors.ConnectTimeoutError) return 'connect-timeout'
  // Of a proxy that does not answer CONNECT: the request itself was still to come.
  if (error instanceof errors.HeadersTimeoutError) return 'connect-timeout'
  if (error instanceof errors.ClientClosedError || error instanceof errors.ClientDestroyedError) {
    return 'client-closed'
  }
  const code = codeOf(error)
  if (code === 'ECONNREFUSED') return 'connection-refused'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'dns'
  if (code === 'ETIMEDOUT') return 'connect-timeout'
  return TLS.test(code) ? 'tls' : 'connection-failed'
}

/** Handshake and certificate errors, by the names that OpenSSL and Node give them. */
const TLS = /^(ERR_TLS|ERR_SSL|EPROTO$|CERT_|CRL_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH)/

/** What became of a request whose bytes may have left. None of these says whether the gateway has it. */
export function whyNoAnswer(error: Error): 'timeout' | 'connection-lost' | 'unparsable' {
  if (
    error instanceof errors.HeadersTimeoutError ||
    error instanceof errors.BodyTimeoutError ||
    error instanceof AnswerTooSlow
  ) {
    return 'timeout'
  }
  const unreadable =
    error instanceof errors.HTTPParserError ||
    error instanceof errors.HeadersOverflowError ||
    error instanceof errors.ResponseExceededMaxSizeError ||
    error instanceof AnswerInTooManyParts
  return unreadable ? 'unparsable' : 'connection-lost'
}
