import { PgBoss } from 'pg-boss'
import { type Payer, runPipeline } from './pipeline.ts'

const QUEUE = 'payout'
/** A batch waits for its slowest payout; smaller ones cost more, and larger ones wait longer. */
const BATCH = 64

await runPipeline('pg-boss', async ({ inFlight }) => {
  const boss = new PgBoss({ connectionString: String(process.env.DATABASE_URL), max: 4 })
  boss.on('error', (error) => console.error(error))
  await boss.start()
  await boss.createQueue(QUEUE)
  return {
    add: (client, orderNos) =>
      boss.insert(
        QUEUE,
        orderNos.map((orderNo) => ({ data: { orderNo } })),
        { db: { executeSql: (text, values) => client.query(text, values) } },
      ),
    work: ({ intend, pay }: Payer) =>
      boss.work<{ orderNo: string }>(
        QUEUE,
        {
          batchSize: BATCH,
          localConcurrency: Math.max(1, Math.round(inFlight / BATCH)),
          burstWhenBatchFull: true,
          pollingIntervalSeconds: 0.5,
        },
        async (jobs) => pay(await intend(jobs.map(({ data }) => data.orderNo))),
      ),
  }
})
