import { errors } from 'undici'
import type { NotSentReason } from '../../domain/gateway-answers.ts'

/** Thrown just before the bytes would be handed over. */
export class LeaseEnded extends Error {
  readonly code = 'LEASE_ENDED'
}

/** Thrown at that moment if nobody can say whether the request may still be sent. */
export class LeaseCheckFailed extends Error {
  readonly code = 'LEASE_CHECK_FAILED'
}

/** Thrown if an answer drips so slowly, byte by byte, that no pause in it is a timeout. */
export class AnswerTooSlow extends Error {
  readonly code = 'ANSWER_TOO_SLOW'
}

/** Thrown if an answer comes in so many pieces that reading it would block everything else. */
export class AnswerInTooManyParts extends Error {
  readonly code = 'ANSWER_IN_TOO_MANY_PARTS'
}

/** The error code of Node or undici, or the name of the error's class. Contains nothing of the request. */
export const codeOf = (error: Error): string =>
  'code' in error && typeof error.code === 'string' ? error.code : error.name

/** Why a request did not leave, from the error that came before its bytes were handed over. */
export function whyNotSent(error: Error): NotSentReason {
  if (error instanceof LeaseEnded) return 'lease-ended'
  if (error instanceof LeaseCheckFailed) return 'lease-check-failed'
  if (error instanceof errors.ConnectTimeoutError) return 'connect-timeout'
  // A proxy did not answer CONNECT, so the request itself had not begun.
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

/** Handshake and certificate errors, by their names in OpenSSL and Node. */
const TLS = /^(ERR_TLS|ERR_SSL|EPROTO$|CERT_|CRL_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH)/

/** What happened to a request whose bytes may have left. None of these says whether the gateway has it. */
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
