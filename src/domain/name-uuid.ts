import { hash } from 'node:crypto'

const NAMESPACE = Buffer.from('0f6b7a525e0c5b8e9d5e6a1c2f1b7d10', 'hex')

/** payoutd's id for this name: always the same. A UUID of version 5 in payoutd's own namespace. Source: RFC 9562, section 5.5. */
export function nameUuid(name: string): string {
  const digest = hash('sha1', Buffer.concat([NAMESPACE, Buffer.from(name)]), 'hex')
  const variant = '89ab'.charAt(Number.parseInt(digest.charAt(16), 16) & 3)
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${digest.slice(13, 16)}-${variant}${digest.slice(17, 20)}-${digest.slice(20, 32)}`
}
