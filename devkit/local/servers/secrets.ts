import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { Layout } from './layout.ts'
import { writeWhole } from './processes/write-whole.ts'

export interface StackSecrets {
  postgresPassword: string
  gatewayKey: string
}

/** The stack's own random secrets, created at its first start and kept with the data that they open. */
export async function loadSecrets(layout: Layout): Promise<StackSecrets> {
  const file = path.join(layout.data, 'secrets.json')
  if (existsSync(file)) return JSON.parse(await readFile(file, 'utf8'))
  const secrets = { postgresPassword: random(), gatewayKey: random() }
  await mkdir(layout.data, { recursive: true })
  writeWhole(file, `${JSON.stringify(secrets)}\n`, 0o600)
  return secrets
}

function random(): string {
  return randomBytes(24).toString('hex')
}
