import type { Config } from '../config/config.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { connectDatabase } from '../platform/postgres/postgres.ts'
import type { Codec } from '../platform/registry/codec.ts'
import { Lifecycle } from '../platform/running/lifecycle.ts'
import { LOCKS_MS } from './with-database.ts'

/**
 * The ledger for one command that changes it, closed when `work` has ended. What it needs is loaded only now, because commands that
 * only read start without it.
 */
export async function withLedger<T>(
  config: Config,
  work: (ledger: Ledger, codec: Codec) => Promise<T>,
  connect: typeof connectDatabase = (options) => connectDatabase({ ...options, lockTimeoutMs: LOCKS_MS }),
): Promise<T> {
  const { openLedger } = await import('../app/ledger.ts')
  const { createLogger } = await import('../platform/log.ts')
  const lifecycle = new Lifecycle(createLogger({ name: 'payoutd', level: config.logLevel, destination: 2 }))
  try {
    const { ledger, codec } = await openLedger(config, lifecycle, { connect })
    return await work(ledger, codec)
  } finally {
    await lifecycle.stop()
  }
}
