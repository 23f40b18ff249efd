import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import path from 'node:path'

/** Writes raw numbers with the date and the machine of the measurement; returns the file. */
export async function keepResults(name: string, at: Date, numbers: object): Promise<string> {
  const folder = path.join(import.meta.dirname, '..', 'results')
  await mkdir(folder, { recursive: true })
  const file = path.join(folder, `${name}-${at.toISOString().slice(0, 19).replaceAll(':', '')}.json`)
  const machine = {
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    memoryMb: Math.round(totalmem() / 1024 / 1024),
    node: process.version,
  }
  await writeFile(file, `${JSON.stringify({ at: at.toISOString(), machine, ...numbers }, null, 2)}\n`)
  return path.relative(process.cwd(), file)
}
