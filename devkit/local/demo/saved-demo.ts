import { randomBytes, randomInt } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { isFree, type PortPreference } from '../servers/processes/ports.ts'

/** What payoutd needs beside the servers' addresses: created at the first start in a directory, and kept there. */
export interface SavedDemo {
  /** In the format of ENCRYPTION_KEYS and FINGERPRINT_KEY. */
  encryptionKeys: string
  fingerprintKey: string
  /** The callback endpoint: the gateway knows it from orders of earlier runs. */
  publicPort: number
  internalPort: number
}

const USUAL = { publicPort: 8080, internalPort: 9464 }

/**
 * Reads what is kept in `dir`, creates what is missing, and replaces ports that another program uses now. Deleting
 * the stack's data does not touch this file: a given database contains data sealed with its keys.
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

/** The first free port of `wanted`, or any below the range that systems use for outgoing connections. */
async function freePort(wanted: readonly (number | undefined)[], taken?: number): Promise<number> {
  const usable = async (port: number) => port !== taken && (await isFree(port))
  for (const port of wanted) if (port !== undefined && (await usable(port))) return port
  for (;;) {
    const port = randomInt(20_000, 32_000)
    if (await usable(port)) return port
  }
}
