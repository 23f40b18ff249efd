import { readFileSync } from 'node:fs'

/**
 * A secret by reference: `env:NAME` or `file:/path`. The secret itself never stands in a file of settings.
 * Throws an Error that names the reference, never the secret.
 */
export function resolveSecret(reference: string, env: NodeJS.ProcessEnv): string {
  const [kind, place] = [
    reference.slice(0, reference.indexOf(':')),
    reference.slice(reference.indexOf(':') + 1),
  ]
  if (kind === 'env') {
    const value = env[place]
    if (!value) throw new Error(`${reference}: the variable is not set`)
    return value
  }
  if (kind === 'file') {
    try {
      return readFileSync(place, 'utf8').trim()
    } catch (error) {
      throw new Error(`${reference}: the file cannot be read`, { cause: error })
    }
  }
  throw new Error('a secret must be given as env:NAME or file:/path')
}
