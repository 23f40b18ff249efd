import { IFSC, isIdentifier } from '../domain/commands/validate.ts'
import { maskAccount, maskVpa, scrub } from '../domain/mask.ts'
import { formatRupees, paise } from '../domain/money.ts'
import { isEnd } from '../domain/payout/states.ts'
import { formatTime } from '../domain/times.ts'
import type { Decoded } from '../platform/registry/codec.ts'
import type { Inside } from '../stages/intake/dead-letter.ts'
import { type DeadLetter, positionOf } from '../stages/intake/dead-letters.ts'
import type { Expected } from '../stages/intake/preview-replay.ts'
import { table } from '../text/table.ts'
import { cutText } from '../text/text.ts'

const HEADINGS = ['POSITION', 'SINCE', 'REASON', 'ORIGIN', 'REPLAYED']

export function lettersText(letters: readonly DeadLetter[]): string {
  const rows = letters.map((letter) => [
    positionOf(letter),
    formatTime(letter.at),
    letter.reason,
    letter.origin,
    replayedText(letter) ?? 'never',
  ])
  return table([HEADINGS, ...rows], ['', '', '', '', '']).join('\n')
}

/** Null if it was never replayed. */
export function replayedText({ replayed }: DeadLetter): string | null {
  if (!replayed) return null
  const { times, replayedBy, at, reason } = replayed
  return `${formatTime(at)} by ${replayedBy}: ${reason}${times > 1 ? ` (the ${times}th time)` : ''}`
}

/** The content of a dead letter, in the form that may be shown. */
export type Content =
  | { kind: 'sealed' }
  | Extract<Inside, { kind: 'trace' }>
  | { kind: 'undecodable'; reason: string; detail: string; bytes: number; text: string }
  | { kind: 'command'; name: string; fields: Record<string, string> }

/** Why something cannot be shown or done, and what to do about it. */
export const SEALED = 'the current ENCRYPTION_KEYS do not decrypt it: add the key that encrypted it'

/** Says where to find the record that a dead letter does not hold. */
export const traceText = ({ why }: Extract<Inside, { kind: 'trace' }>, { origin }: DeadLetter): string =>
  `it does not contain its record (${why}). The record is at ${origin} as long as Kafka keeps it; ask its sender to send it again in smaller pieces`

const SHOWN = 240
const FILE_HASH = /^[0-9a-f]{64}$/

/** A word may be anybody's name, so words are masked; an account number or a VPA does not match as the name of a field. */
const FIELD_OR_WORD = /"[A-Za-z_]{1,32}"(?=\s*:)|[\p{L}\p{N}]+/gu

/** Masks bank details. For bytes that nobody can decode, shows the shape, with the names of JSON's fields. */
export function contentOf(value: Buffer | null, decoded: Decoded): Content {
  if (decoded.kind === 'undecodable') {
    const { reason, detail } = decoded
    const text = (value ?? Buffer.alloc(0)).toString('utf8').replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, '·')
    const shape = text.replace(FIELD_OR_WORD, (found) => (found.startsWith('"') ? found : '••••'))
    return { kind: 'undecodable', reason, detail, bytes: value?.length ?? 0, text: cutText(shape, SHOWN) }
  }
  const fields = Object.entries(decoded.value as Record<string, unknown>)
    .filter(([, field]) => field !== null)
    .map(([name, field]) => [name, shown(name, field)])
  return { kind: 'command', name: decoded.name, fields: Object.fromEntries(fields) }
}

/** The form in which a field may be shown. A field of an unexpected kind may hold anything. */
function shown(name: string, field: unknown): string {
  const text = typeof field === 'object' ? JSON.stringify(field) : String(field)
  switch (name) {
    case 'accountNo':
    case 'phoneNumber':
      return maskAccount(text)
    case 'vpa':
    case 'payerEmail':
      return maskVpa(text)
    case 'accountName':
      return '••••'
    case 'amount':
      return formatRupees(paise(field as bigint))
    case 'notBefore':
    case 'deadline':
    case 'declaredAt':
      return formatTime(field as number)
    case 'payoutId':
    case 'merchantId':
    case 'batchId':
      return isIdentifier(text) ? text : cutText(scrub(text), SHOWN)
    case 'fileHash':
      return FILE_HASH.test(text) ? text : cutText(scrub(text), SHOWN)
    case 'ifsc':
      return IFSC.test(text) ? text : cutText(scrub(text), SHOWN)
    default:
      return cutText(scrub(text), SHOWN)
  }
}

export function letterText(letter: DeadLetter, content: Content): string {
  const facts: [string, string | null][] = [
    ['since', formatTime(letter.at)],
    ['reason', letter.reason],
    ['origin', letter.origin],
    ['replayed', replayedText(letter)],
  ]
  return [
    `dead letter ${positionOf(letter)}`,
    ...facts.flatMap(([name, value]) => (value === null ? [] : [line(name, value)])),
    '',
    ...contentLines(content, letter),
  ].join('\n')
}

function contentLines(content: Content, letter: DeadLetter): string[] {
  switch (content.kind) {
    case 'sealed':
      return [SEALED]
    case 'trace':
      return [
        traceText(content, letter),
        line('bytes', String(content.bytes)),
        line('sha256', content.sha256),
      ]
    case 'undecodable':
      return [
        `${content.bytes} bytes that payoutd cannot decode: ${content.reason}, ${content.detail}`,
        line('text', content.text),
      ]
    case 'command':
      return [content.name, ...Object.entries(content.fields).map(([name, value]) => line(name, value))]
  }
}

const line = (name: string, value: string): string => `  ${name.padEnd(16)}${value}`

function cancelText({ payoutId, to }: Extract<Expected, { kind: 'cancel' }>): string {
  if (to === null)
    return `would be an anomaly: it cancels payout ${payoutId}, which the ledger does not have; payoutd would cancel that payout when it arrives`
  if (to === 'cancelled') return `payout ${payoutId} would be cancelled, or is already`
  if (to === 'review') return `payout ${payoutId} would wait in review for a person, or does already`
  return isEnd(to)
    ? `nothing would be cancelled: payout ${payoutId} has ended as ${to}`
    : `payout ${payoutId} is ${to}: payoutd would keep the request, and not send it again`
}

/** Completes "2:17  …". */
export function expectedText(expected: Expected): string {
  switch (expected.kind) {
    case 'dead':
      return `would be dead-lettered again: ${expected.reason}${expected.detail === null ? '' : ` (${expected.detail})`}`
    case 'rejected':
      return `payout ${expected.payoutId} would be rejected: ${expected.faults
        .map(({ field, message, found }) => `${field} ${message} (${found})`)
        .join('; ')}`
    case 'repeat':
      return `nothing would happen: payoutd already has payout ${expected.payoutId} with the same content`
    case 'contradicts':
      return `would be an anomaly: payoutd already has payout ${expected.payoutId} with other content, and keeps that`
    case 'accepted':
      return `payout ${expected.payoutId} would be accepted and become ${expected.state}${expected.reason === null ? '' : ` (${expected.reason})`}`
    case 'cancel':
      return cancelText(expected)
    case 'batch':
      return `would declare batch ${expected.batchId}`
  }
}
