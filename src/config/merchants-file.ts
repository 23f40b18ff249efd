import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { type Merchant, type MerchantFault, readMerchant } from './merchants.ts'

const fileSchema = z.object({ merchants: z.array(z.unknown()).min(1) })

/**
 * The merchants of a file (`{"merchants": [...]}`) by their ids, and every fault in it at once, with the id of its merchant, or
 * else its place.
 */
export function merchantsByFile(
  path: string,
  env: NodeJS.ProcessEnv,
): { merchants: Map<string, Merchant>; faults: string[] } {
  const merchants = new Map<string, Merchant>()
  const entries = entriesOf(path)
  if (typeof entries === 'string')
    return { merchants, faults: [`MERCHANTS_FILE is ${JSON.stringify(path)}: ${entries}`] }
  const faults = entries.flatMap((entry, i) => {
    const read = readMerchant(entry, env)
    if ('faults' in read) return read.faults.map((fault) => line(nameOf(entry, read.faults, i), fault))
    const { merchantId } = read.merchant
    if (merchants.has(merchantId)) return [`merchant ${merchantId} appears twice`]
    merchants.set(merchantId, read.merchant)
    return []
  })
  return { merchants, faults }
}

/** The entries, or the fault of the file. */
function entriesOf(path: string): unknown[] | string {
  try {
    return fileSchema.parse(JSON.parse(readFileSync(path, 'utf8'))).merchants
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT') return 'there is no such file'
    return code ? `the file cannot be read (${code})` : 'must be the path of JSON with a list "merchants"'
  }
}

function nameOf(entry: unknown, faults: readonly MerchantFault[], i: number): string {
  const { id } = Object(entry) as { id?: unknown }
  return `merchant ${id === undefined || faults.some(({ field }) => field === 'id') ? i + 1 : id}`
}

const line = (name: string, { field, what }: MerchantFault): string =>
  `${[name, field].filter(Boolean).join(', ')} ${what}`
