import { Command } from 'commander'
import { SAFEGUARDS, type Safeguards } from '../../../app/safeguards.ts'
import { type Config, readConfig } from '../../../config/config.ts'
import type { Merchant } from '../../../config/merchants.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { topicNames } from '../../../messages/topics.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import type { Codec } from '../../../platform/registry/codec.ts'
import { confirmed, withDecision } from '../../decision.ts'
import { rateOf } from '../../options/rate-of.ts'
import { withDatabase } from '../../with-database.ts'
import { withLedger } from '../../with-ledger.ts'
import { besidesOf } from './besides.ts'
import { endsOf } from './kafka.ts'
import { lower } from './lower.ts'
import type { RecoverOptions } from './options.ts'
import { expected } from './preview.ts'
import { INTERRUPTED, recover, reportInterrupted } from './run.ts'

export const recoverCommand = withDecision(
  new Command('recover')
    .option(
      '--merchant <id>',
      'only ask about this merchant; by default about all in the settings. Unless it is fenced already, payoutd fences all others, too, because they share the ledger',
    )
    .option(
      '--nothing-lost',
      'only remove the fences that payoutd raised, without asking the gateway. You guarantee that the new server has every commit: after a planned switchover, or if it is the standby that every commit waits for',
    )
    .option('--rate <count/s>', 'the most queries per second', rateOf, 10)
    .option('--leave-out <topic/partition/offset...>', 'messages that payoutd did not write and cannot read'),
)
  .addHelpText(
    'after',
    `
After a failover: make sure that the former server is stopped, then run payoutd recover. payoutd serve can keep running,
because payoutd has already fenced every merchant.

After a restore: stop every payoutd, restore, and start payoutd recover. When it asks for it, start payoutd serve, which
reads the commands that the database lost from Kafka again. If recover is interrupted, run the same command again to continue.
payoutd also fences a merchant that is in the ledger but not in the settings. It stays fenced until you put it back into the
settings and run payoutd recover again.
The exit code is 0 if the gateway answered about every payout and sending continues, 1 if payoutd still has to ask about
something and a merchant stays fenced, and ${INTERRUPTED} if interrupted.`,
  )
  .action((options: RecoverOptions) => recoverWith(SAFEGUARDS, options))

/** Runs the command. `connectDatabase`: how it reaches the ledger. */
export async function recoverWith(
  { connectDatabase: connect }: Pick<Safeguards, 'connectDatabase'>,
  options: RecoverOptions,
): Promise<void> {
  const config = readConfig(process.env)
  const merchants = merchantsIn(config, options.merchant)
  if (options.nothingLost) return lower(merchants, options, config)
  const topic = topicNames(config.topicPrefix).commands
  const ends = await endsOf(topic, config)
  const would = await withDatabase(config, async (db) =>
    expected(merchants, await besidesOf(config, options, db), topic, ends, db),
  )
  if (!(await confirmed(would, options))) return
  const work = async (ledger: Ledger, codec: Codec) => {
    const abort = new AbortController()
    const stop = () => abort.abort()
    process.once('SIGINT', stop).once('SIGTERM', stop)
    try {
      await recover({ merchants, topic, options, config, ledger, codec, signal: abort.signal })
    } catch (error) {
      if (error !== abort.signal.reason) throw error
      reportInterrupted()
    } finally {
      process.off('SIGINT', stop).off('SIGTERM', stop)
    }
  }
  await withLedger(config, work, connect)
}

function merchantsIn({ merchants }: Config, given: string | undefined): Merchant[] {
  if (given === undefined) return [...merchants.values()]
  const merchant = merchants.get(given)
  if (merchant) return [merchant]
  throw new ExpectedFailure(
    `there is no merchant ${given}; the settings have ${[...merchants.keys()].join(', ')}`,
  )
}
