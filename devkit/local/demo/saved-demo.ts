import { randomBytes, randomInt } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { isFree, type PortPreference } from '../servers/processes/ports.ts'

/** What payoutd needs beside the servers' addresses: made at the first start in a directory, and kept there. */
export interface SavedDemo {
  /** As ENCRYPTION_KEYS and FINGERPRINT_KEY want them. */
  encryptionKeys: string
  fingerprintKey: string
  /** The callback endpoint: the gateway knows it from orders of earlier runs. */
  publicPort: number
  internalPort: number
}

const USUAL = { publicPort: 8080, internalPort: 9464 }

/**
 * Reads what is kept in `dir`, makes what is missing, and chooses other ports for those that somebody else
 * has taken. Deleting the stack's data leaves it alone: a database that is given has data sealed with it.
 */
export async function loadSavedDemo(dir: string, preference: PortPreference): Promise<SavedDemo> {
  const file = path.join(dir, 'payoutd.json')
  const before: Partial<SavedDemo> = JSON.parse(await readFile(file, 'utf8').catch(() => '{}'))
  const usual: Partial<typeof USUAL> = preference === 'usual' ? USUAL : {}
  const publicPort = await freePort([before.publicPort, usual.publicPort])
  const internalPort = await freePort([before.internalPort, usual.internalPort], publicPort)
  const kept = {
    encryptionKeys: before.encryptionKeys ?? `1:${key()}`,
    fingerprintKey: before.fingerprintKey ?? key(),
    publicPort,
    internalPort,
  }
  await writeFile(`${file}.unfinished`, `${JSON.stringify(kept, null, 2)}\n`, { mode: 0o600 })
  await rename(`${file}.unfinished`, file)
  return kept
}

const key = (): string => randomBytes(32).toString('base64')

/** The first free one of `wanted`, or any below the range that systems take outgoing ports from. */
async function freePort(wanted: readonly (number | undefined)[], taken?: number): Promise<number> {
  const usable = async (port: number) => port !== taken && (await isFree(port))
  for (const port of wanted) if (port !== undefined && (await usable(port))) return port
  for (;;) {
    const port = randomInt(20_000, 32_000)
    if (await usable(port)) return port
  }
}
