import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'

/** Several merchants with an account each, as settings of a worker that replace those of the testbed's merchant. */
export async function merchantsFile(
  folder: string,
  merchants: readonly { id: string; mchId: string; baseUrl: string | undefined }[],
): Promise<Record<string, string>> {
  const same = { key: 'env:GATEWAY_KEY', dialect: 'sandbox', maxInFlight: 256 }
  await mkdir(folder, { recursive: true })
  const file = path.join(folder, 'merchants.json')
  await writeFile(file, JSON.stringify({ merchants: merchants.map((each) => ({ ...each, ...same })) }))
  return { MERCHANTS_FILE: file }
}
