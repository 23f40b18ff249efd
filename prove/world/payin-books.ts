import { type Discrepancy, discrepancy } from '../../devkit/oracle/check.ts'
import type { PublishedPayinResult } from '../../devkit/oracle/published-messages.ts'
import type { Sandbox } from '../../devkit/sandbox/sandbox.ts'
import type { WorldMerchant } from './merchants.ts'

/** A payin in the gateway's books (devkit/sandbox/README.md, "The books"): status 0 waits, 2 is paid, 3 failed. */
export type PayinLine = { mchOrderNo: string; payOrderId: string; status: number; untoldUtrs: string[] }

export async function payinsAt(
  { url }: Pick<Sandbox, 'url'>,
  merchants: readonly WorldMerchant[],
): Promise<PayinLine[]> {
  const lines: PayinLine[] = []
  for (const { mchId } of merchants) {
    const told = await (await fetch(`${url}/_sandbox/payins?mchId=${mchId}`)).text()
    for (const line of told.split('\n')) if (line !== '') lines.push(JSON.parse(line) as PayinLine)
  }
  return lines
}

/** Compares the gateway's books with what a reader of `payin.results` believes, which drops known event ids. */
export function checkPayins(
  payinIds: readonly string[],
  told: readonly PublishedPayinResult[],
  books: readonly PayinLine[],
): Discrepancy[] {
  return payinIds.flatMap((payinId) => {
    const first = new Map<string, PublishedPayinResult>()
    for (const each of told)
      if (each.payinId === payinId && !first.has(each.eventId)) first.set(each.eventId, each)
    const last = [...first.values()].sort((a, b) => a.version - b.version).at(-1)
    const isPaid = books.some(({ mchOrderNo, status }) => mchOrderNo === payinId && status === 2)
    const kind = isPaid ? 'paid-there-only' : 'paid-here-only'
    return isPaid === (last?.status === 'PAID')
      ? []
      : [discrepancy(kind, `payin ${payinId}`, `was told as ${last?.status ?? 'nothing'}`)]
  })
}
