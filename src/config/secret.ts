import { readFileSync } from 'node:fs'

/**
 * Resolves a secret reference: `env:NAME` or `file:/path`. No settings file ever contains the secret itself. Throws an Error that
 * names the reference, never the secret.
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
  if (kind === 'file') return readSecret(place, reference)
  throw new Error('a secret must be given as env:NAME or file:/path')
}

/**
 * The environment with each of `names` set: as given, or from the file at the path in NAME_FILE. The faults (a file that cannot
 * be read or is empty, NAME and NAME_FILE both given) name the variable, and show neither the secret nor the path, which may be a
 * secret by mistake.
 */
export function withSecretFiles(
  env: NodeJS.ProcessEnv,
  names: readonly string[],
): { env: NodeJS.ProcessEnv; faults: string[] } {
  const secrets: NodeJS.ProcessEnv = {}
  const faults: string[] = []
  for (const name of names) {
    const file = env[`${name}_FILE`]
    if (!file) continue
    if (env[name]) {
      faults.push(`${name} and ${name}_FILE are both set: give one of them`)
      continue
    }
    try {
      secrets[name] = readSecret(file, `${name}_FILE`)
    } catch (error) {
      faults.push(error instanceof Error ? error.message : String(error))
    }
  }
  return { env: { ...env, ...secrets }, faults }
}

/** The content of the file, without the newline that editors add. `name` is how errors call the file. */
function readSecret(file: string, name: string): string {
  let secret: string
  try {
    secret = readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new Error(`${name}: the file cannot be read (${(error as NodeJS.ErrnoException).code})`, {
      cause: error,
    })
  }
  if (secret === '') throw new Error(`${name}: the file is empty`)
  return secret
}
