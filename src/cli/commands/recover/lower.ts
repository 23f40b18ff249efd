import type { Config } from '../../../config/config.ts'
import type { Merchant } from '../../../config/merchants.ts'
import { type Lowered, lowerFence } from '../../../operators/recovery/nothing-lost.ts'
import { onThisServer } from '../../../operators/recovery/one-server.ts'
import { publishedBeyond } from '../../../operators/recovery/published-beyond.ts'
import { type ActReport, confirmed, reportDone, reportRefused } from '../../decision.ts'
import { inLines, note } from '../../print.ts'
import { withLedger } from '../../with-ledger.ts'
import { published } from './kafka.ts'
import type { RecoverOptions } from './options.ts'

/** Removes the fences of these merchants if the operator guarantees that nothing was lost. */
export async function lower(
  merchants: readonly Merchant[],
  options: RecoverOptions,
  config: Config,
): Promise<void> {
  const names = merchants.map(({ merchantId }) => merchantId)
  const text = `payoutd would remove the fences that it raised, without asking the gateway: ${names.join(', ')}`
  if (!(await confirmed({ text, json: { merchants: names } }, options))) return
  const lowered: Lowered[] = []
  await withLedger(config, async (anywhere, codec) => {
    const ledger = await onThisServer(anywhere)
    note('reading published messages and comparing them with the ledger')
    const lacking = await publishedBeyond(published(ledger, codec, config, options))
    const said = { ...options, isNamed: options.merchant !== undefined, lacking }
    for (const merchantId of names) lowered.push(await lowerFence(merchantId, said, ledger))
  })
  const lines = inLines(lowered).map(({ merchantId, kept }) =>
    kept === null ? `${merchantId}: sending continues` : `${merchantId}: nothing was done, ${kept}`,
  )
  const report: ActReport = { text: lines.join('\n'), json: { merchants: lowered } }
  if (lowered.every(({ kept }) => kept === null)) reportDone(report, options)
  else reportRefused(report, options)
}
