import { Logger, run } from 'graphile-worker'
import { grouped } from './grouped.ts'
import { type Payer, runPipeline } from './pipeline.ts'

const TASK = 'payout'

await runPipeline('graphile-worker', async ({ pool, inFlight }) => ({
  add: (client, orderNos) =>
    client.query({
      name: 'add',
      text: `select count(*) from graphile_worker.add_jobs(array(
               select row('${TASK}', json_build_object('orderNo', order_no), null, null, null, null, null, null)::graphile_worker.job_spec
               from unnest($1::text[]) as order_no))`,
      values: [orderNos],
    }),
  work: async ({ intend, pay }: Payer) => {
    const intended = grouped(intend, { most: 64, waitMs: 2, atOnce: 4 })
    await run({
      pgPool: pool,
      concurrency: inFlight,
      noHandleSignals: true,
      // It would log a line for each job.
      logger: new Logger(() => () => undefined),
      taskList: {
        [TASK]: async (payload) => {
          const { orderNo } = payload as { orderNo: string }
          await pay((await intended(orderNo)).filter((row) => row.orderNo === orderNo))
        },
      },
      preset: { worker: { localQueue: { size: 1_000 }, completeJobBatchDelay: 25, pollInterval: 500 } },
    })
  },
}))
