import type { Census } from '../operators/rotate-keys.ts'

/** What a rotation came to, and what the keys seal after it. Ids of keys in ascending order. */
export type Rotation = {
  current: number
  /** Bank details of payouts. */
  resealed: number
  /** Kept callbacks, and dead letters that wait for Kafka or that it refused. */
  others: number
  interrupted: boolean
  /** What no key at hand opens, by the key that sealed it. */
  unopened: Census
  census: Census
  /** Former keys that seal nothing in the database any more. */
  unused: readonly number[]
  retired: boolean
}

const things = (census: Census, current: number): [number, number][] =>
  [...census].filter(([keyId]) => keyId !== current).sort(([a], [b]) => a - b)

export const isComplete = ({ census, current, interrupted }: Rotation): boolean =>
  !interrupted && things(census, current).length === 0

/** What would be done, of what the keys seal now. */
export function previewText(census: Census, current: number, retire: boolean): string {
  const old = things(census, current)
  const retiring = retire ? '; proofs of keys that seal nothing then would be removed' : ''
  if (old.length === 0) return `nothing is sealed with another key than ${current}${retiring}`
  return [
    `first every running payoutd must be started with key ${current}: what one without it claims is held until then`,
    `what is sealed with ${old.map(([keyId, count]) => `key ${keyId} (${count})`).join(', ')} would be sealed anew with key ${current}${retiring}`,
  ].join('\n')
}

export function rotationText(rotation: Rotation): string {
  const { current, resealed, others, interrupted, unopened, census, unused, retired } = rotation
  const beside = others > 0 ? `, and ${others} callbacks and dead letters` : ''
  const lines = [`${resealed} payouts are sealed anew with key ${current}${beside}`]
  for (const [keyId, count] of things(unopened, current)) {
    lines.push(
      `${count} do not open: put the key that was ${keyId} back into ENCRYPTION_KEYS under ${keyId}, and run this again`,
    )
  }
  if (interrupted) return [...lines, 'interrupted: the same command goes on'].join('\n')
  for (const [keyId, count] of things(census, current)) {
    if (unopened.has(keyId)) continue
    lines.push(
      `key ${keyId} still seals ${count}: what was in use just now, or what a process that was started before key ${current} came ` +
        'has sealed; start it again, then run this again',
    )
  }
  for (const keyId of unused) {
    lines.push(
      `key ${keyId} seals nothing in the database any more; ` +
        (retired
          ? 'its proof is removed, so payoutd starts without it'
          : 'payoutd keys rotate --retire removes its proof, so that payoutd starts without it') +
        '. Dead letters in Kafka may need it until their retention ends',
    )
  }
  return lines.join('\n')
}
