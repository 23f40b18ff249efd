import path from 'node:path'
import { openCommandsTopic } from '../../../src/batches/commands-topic.ts'
import { ingest } from '../../../src/batches/ingest.ts'
import type { Payroll } from '../../../src/batches/payroll.ts'
import { report as ingestReport } from '../../../src/batches/report.ts'
import { type Config, readConfig } from '../../../src/config/config.ts'
import type { Merchant } from '../../../src/config/merchants.ts'
import { topicNames } from '../../../src/messages/topics.ts'
import { ExpectedFailure } from '../../../src/platform/expected-failure.ts'
import type { Logger } from '../../../src/platform/log.ts'
import { connectDatabase } from '../../../src/platform/postgres/postgres.ts'
import type { Clock } from '../../../src/platform/running/clock.ts'
import type { Lifecycle } from '../../../src/platform/running/lifecycle.ts'
import { check } from '../../oracle/check.ts'
import { Gateway } from '../../oracle/gateway-books.ts'
import { readLedgerRecords } from '../../oracle/ledger-records.ts'
import { outcomesOf } from '../../oracle/outcome.ts'
import { untilSettled } from '../../oracle/settled.ts'
import { TopicRecorder } from '../../oracle/topic-recorder.ts'
import type { PhaseTeller } from './bars.ts'
import { checkExpectations, readExpectations } from './expectations.ts'
import { figuresOf } from './figures.ts'
import type { Installation } from './installation.ts'
import { readPayrollRows } from './payroll-rows.ts'
import type { ReportInput } from './report.ts'
import { MERCHANT_ID } from './settings.ts'

export type DemoDeps = {
  teller: PhaseTeller
  /** Owns what the demo opens. */
  lifecycle: Lifecycle
  clock: Clock
  log: Logger
  signal: AbortSignal
}

/**
 * Pays a payroll file with `installation`, which must be new, waits for every end, and compares what payoutd
 * published with the file, with the file's expectations, and with the gateway's books. Throws an ExpectedFailure if
 * the file cannot be paid or payouts do not end, and the signal's reason when that aborts.
 */
export async function payAndCheck(
  installation: Installation,
  payrollPath: string,
  deps: DemoDeps,
): Promise<Omit<ReportInput, 'file' | 'phases'>> {
  const { teller, lifecycle, clock, log, signal } = deps
  const config = readConfig(installation.settings)
  const merchant = config.merchants.get(MERCHANT_ID) as Merchant
  const payroll = payrollOf(payrollPath, merchant)
  const rows = await readPayrollRows(payroll)
  const recorder = await TopicRecorder.start(config, log)
  lifecycle.own('witness', () => recorder.stop())
  const db = connectDatabase({ url: config.databaseUrl, connections: 1, applicationName: 'payoutd demo' })
  lifecycle.own('database', () => db.close())
  const gateway = new Gateway(merchant.baseUrl, merchant.mchId)
  const { asked } = rows

  const refusedFile = await teller.withBar('publishing', asked.length, (onProgress) =>
    publish(payroll, config, deps, onProgress),
  )
  await teller.withBar('settling', asked.length, (onProgress) =>
    untilSettled({ asked, recorder, gateway, db, clock, signal, onProgress }),
  )
  return teller.run('checking', async () => {
    const { told } = recorder
    const [books, orders] = [await gateway.books(), await gateway.orders()]
    const outcomes = outcomesOf(asked, told, await readLedgerRecords(db, MERCHANT_ID), orders)
    const { payouts } = outcomes
    const expectations = await readExpectations(payrollPath)
    const unexpected = expectations ? checkExpectations(expectations, rows.refused, payouts) : []
    return {
      figures: figuresOf(rows.summary, outcomes),
      refused: rows.refused,
      refusedFile,
      payouts,
      expectations: expectations ?? [],
      told,
      books,
      orders,
      discrepancies: [...check(outcomes, books), ...unexpected],
    }
  })
}

const payrollOf = (payrollPath: string, { merchantId, limits }: Merchant): Payroll => ({
  path: payrollPath,
  batch: { merchantId, batchId: 'demo', limits },
  referenceFrom: [],
})

/** `payoutd ingest --publish-valid-rows`. Returns the list of refused rows, if there is one. */
async function publish(
  payroll: Payroll,
  { kafka, registry, topicPrefix }: Config,
  { clock, log, signal }: DemoDeps,
  onProgress: (done: number) => void,
): Promise<string | null> {
  const topics = topicNames(topicPrefix)
  const ingested = await ingest(
    { payroll, expected: { rows: null, amount: null }, publishValidRows: true, dryRun: false },
    {
      openCommandsTopic: () => openCommandsTopic({ kafka, registry, topics, log }),
      checkpointFolder: path.join(path.dirname(payroll.path), 'checkpoints'),
      // The ledger is new.
      compare: async () => ({ kind: 'unknown', why: 'nobody asked' }),
      cancellation: async () => null,
      agrees: async () => true,
      onBegin: async () => undefined,
      clock,
      signal,
      onBytes: () => undefined,
      onPublished: onProgress,
    },
  )
  signal.throwIfAborted()
  if (ingested.kind !== 'published') throw new ExpectedFailure(ingestReport(ingested))
  return ingested.refusedFile
}
