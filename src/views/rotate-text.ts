import type { Census } from '../operators/rotate-keys.ts'

/** The result of a rotation, and what the keys seal after it. Ids of keys in ascending order. */
export type Rotation = {
  current: number
  /** Bank details of payouts. */
  resealed: number
  /** Kept callbacks, and dead letters that wait for Kafka or that it refused. */
  others: number
  interrupted: boolean
  /** What no available key opens, by the key that sealed it. */
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

/** What a rotation would do, given what the keys seal now. */
export function previewText(census: Census, current: number, retire: boolean): string {
  const old = things(census, current)
  const retiring = retire ? '; it would then remove the proofs of keys that nothing is encrypted with' : ''
  if (old.length === 0) return `everything is encrypted with key ${current}${retiring}`
  return [
    `first restart every running payoutd with key ${current}: a process without it holds the payouts that it cannot decrypt`,
    `would encrypt again with key ${current}: everything under ${old.map(([keyId, count]) => `key ${keyId} (${count})`).join(', ')}${retiring}`,
  ].join('\n')
}

export function rotationText(rotation: Rotation): string {
  const { current, resealed, others, interrupted, unopened, census, unused, retired } = rotation
  const beside = others > 0 ? `, and ${others} callbacks and dead letters` : ''
  const lines = [`encrypted ${resealed} payouts again with key ${current}${beside}`]
  for (const [keyId, count] of things(unopened, current)) {
    lines.push(
      `cannot decrypt ${count}: put the key that had the id ${keyId} back into ENCRYPTION_KEYS as ${keyId}, and run this again`,
    )
  }
  if (interrupted) return [...lines, 'interrupted: run the same command again to continue'].join('\n')
  for (const [keyId, count] of things(census, current)) {
    if (unopened.has(keyId)) continue
    lines.push(
      `${count} are still encrypted with key ${keyId}: payoutd was using them, or a process that does not have key ${current} ` +
        'encrypted them. Restart such processes, then run this again',
    )
  }
  for (const keyId of unused) {
    lines.push(
      `nothing in the database is encrypted with key ${keyId}; ` +
        (retired
          ? 'its proof is removed, so payoutd starts without the key'
          : 'payoutd keys rotate --retire removes its proof, so that payoutd starts without the key') +
        '. Dead letters in Kafka may need it until their retention ends',
    )
  }
  return lines.join('\n')
}
