import { randomUUID } from 'node:crypto'
import type { Config } from '../config/config.ts'
import type { QueryPolicy } from '../domain/payout/next-query.ts'
import { type ConnectedAccounts, connectAccounts } from '../gateway/accounts.ts'
import { withAccount } from '../gateway/dialect/account.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { mixedAnswers } from '../ledger/mixed-answers.ts'
import { demandStartable, requireInForce } from '../operators/gateway-settings.ts'
import { type KeyPair, proveKeys } from '../operators/key-proofs.ts'
import { earlierLedger } from '../operators/recovery/earlier-ledger.ts'
import type { Logger } from '../platform/log.ts'
import { Metrics } from '../platform/metrics.ts'
import type { Codec } from '../platform/registry/codec.ts'
import { type Clock, systemClock } from '../platform/running/clock.ts'
import type { CommitName } from '../platform/running/crash-points.ts'
import type { Lifecycle } from '../platform/running/lifecycle.ts'
import { openLedger } from './ledger.ts'
import type { Safeguards } from './safeguards.ts'

/** What all roles of one process share. */
export type Shared = {
  config: Config
  safeguards: Safeguards
  ledger: Ledger
  codec: Codec
  /** By merchant, as is `queryPolicies`. */
  gateways: ReadonlyMap<string, ConnectedAccounts>
  /** From then on `listener` gets the name of each transaction that this process commits. */
  onCommit: (listener: (name: CommitName) => void) => void
  queryPolicies: ReadonlyMap<string, QueryPolicy>
  metrics: Metrics
  lifecycle: Lifecycle
  clock: Clock
  /** Names this process in leases. */
  processId: string
  log: Logger
}

/** A statement that waits longer for a lock gives up, frees its connection and is tried again later. */
const LOCK_TIMEOUT_MS = 1_000

export const keysOf = ({ sealing, fingerprintKey }: Config): KeyPair => ({
  sealing,
  fingerprint: fingerprintKey,
})

export async function share(
  config: Config,
  safeguards: Safeguards,
  lifecycle: Lifecycle,
  log: Logger,
  stopping: AbortSignal,
): Promise<Shared> {
  stopping.throwIfAborted()
  const clock = systemClock
  const listeners: ((name: CommitName) => void)[] = []
  const onCommit = (name: CommitName): void => {
    for (const listener of listeners) listener(name)
  }
  const { ledger, codec } = await openLedger(config, lifecycle, {
    connect: (options) =>
      safeguards.connectDatabase({ ...options, lockTimeoutMs: LOCK_TIMEOUT_MS, onCommit }),
    log,
  })
  await proveKeys(ledger.db, keysOf(config))
  const gateways = await connectGateways(config, ledger, lifecycle, clock, log, stopping)
  const queryPolicies = new Map(
    [...gateways].map(([merchantId, [{ queryPolicy }]]) => [merchantId, queryPolicy]),
  )
  const processId = randomUUID()
  return {
    config,
    safeguards,
    ledger,
    codec,
    gateways,
    onCommit: (listener) => void listeners.push(listener),
    queryPolicies,
    metrics: new Metrics(),
    lifecycle,
    clock,
    processId,
    log,
  }
}

/** The gateway accounts of every merchant. Throws if other settings are in force than these. */
export async function connectGateways(
  { merchants, kafka }: Config,
  { db, topics }: Ledger,
  lifecycle: Lifecycle,
  clock: Clock,
  log: Logger,
  stopping: AbortSignal,
): Promise<ReadonlyMap<string, ConnectedAccounts>> {
  const earlier = earlierLedger(kafka, topics)
  const configured = [...merchants.values()].map(withAccount)
  await demandStartable(db, configured)
  for (const each of configured) {
    stopping.throwIfAborted()
    const { merchantId } = each
    const reason = await requireInForce(db, each, earlier)
    if (reason !== null) log.error({ merchantId, reason }, NEWCOMER_FENCED)
  }
  const gateways = new Map(
    [...merchants].map(([merchantId, merchant]) => [
      merchantId,
      connectAccounts(merchant, {
        applies: merchant.maxInFlight,
        clock,
        mixedUp: mixedAnswers(merchantId, db, log),
      }),
    ]),
  )
  lifecycle.own('gateway clients', async () => {
    await Promise.all([...gateways.values()].flat().map(({ client }) => client.close()))
  })
  return gateways
}

const NEWCOMER_FENCED =
  'the merchant is new to this ledger, but the gateway may have orders of it: payoutd has fenced it and sends nothing for it. ' +
  'Make sure that DATABASE_URL and TOPIC_PREFIX are right, and run payoutd recover. If nothing was ever sent for this ' +
  'merchant, run payoutd recover --nothing-lost --merchant for it'

export const urlOf = ({ host, port }: { host: string; port: number }) => `http://${host}:${port}`
