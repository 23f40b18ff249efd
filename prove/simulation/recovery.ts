import { encoderOf } from '../../src/app/ledger.ts'
import { askedAccounts } from '../../src/cli/commands/recover/asked-accounts.ts'
import type { Merchant } from '../../src/config/merchants.ts'
import { DECISIONS } from '../../src/domain/decisions.ts'
import { accountOf, withAccount } from '../../src/gateway/dialect/account.ts'
import { queryPolicyOf } from '../../src/gateway/dialect/dialect.ts'
import { fenceForLosses } from '../../src/ledger/evidence/proven-losses.ts'
import { requireInForce } from '../../src/operators/gateway-settings.ts'
import { untilCaughtUp } from '../../src/operators/recovery/catch-up.ts'
import { onThisServer } from '../../src/operators/recovery/one-server.ts'
import { readBackPublished } from '../../src/operators/recovery/read-back-published.ts'
import {
  beginAgain,
  fence,
  listOpen,
  lowerAfterRecovery,
  queryOpen,
  untilGraceIsOver,
} from '../../src/operators/recovery/recovery.ts'
import { ExpectedFailure } from '../../src/platform/expected-failure.ts'
import type { TopicRecord } from '../../src/platform/kafka/records.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { Actor, ActorFault, type Surroundings } from './actor.ts'

const WHO = { by: 'asha', reason: 'another server took over' }
const RATE_PER_SECOND = 10

/** A person's `payoutd recover`: does what src/cli/commands/recover/run.ts does, step by step, over a simulated world. */
export class Recovery extends Actor {
  /** Reported for every merchant, all of which go on; null: it still runs, or was killed. */
  recovered: boolean | null = null

  readonly #merchantIds: readonly string[]

  constructor(world: Surroundings, merchantIds: readonly string[]) {
    super('payoutd recover', world)
    this.#merchantIds = merchantIds
  }

  get over(): boolean {
    return this.recovered !== null || !this.alive
  }

  protected async run(): Promise<void> {
    try {
      this.recovered = await this.#recover()
    } catch (error) {
      if (!(error instanceof ActorFault || error instanceof ExpectedFailure || isGone(error))) throw error
      this.recovered = false
    }
  }

  async #recover(): Promise<boolean> {
    const { codec, topics, kafka } = this.world
    const { clock } = this
    const merchants = [...this.merchants.values()].filter(({ merchantId }) =>
      this.#merchantIds.includes(merchantId),
    )
    const here = await onThisServer({ db: this.database(), topics, encode: encoderOf(codec, topics) })
    const { db } = here
    await fenceForLosses({ ledger: here, log: silentLogger, merchantIds: [...this.merchants.keys()] })
    for (const merchant of merchants) await requireInForce(db, withAccount(merchant), this.world.earlier)
    const fencing = merchants.map((merchant) => ({
      ...merchant,
      settings: [merchant, ...merchant.formerAccounts].map((each) => accountOf(each).settingsHash),
    }))
    await fence(db, fencing, WHO)
    const signal = new AbortController().signal
    const takenIn = async () => {
      const ends = kafka.commands.map((_, partition) => ({ ...kafka.log(partition), partition }))
      const deps = { db, clock, signal, onBehind: () => undefined }
      const merchantIds = merchants.map(({ merchantId }) => merchantId)
      return (await untilCaughtUp({ topic: topics.commands, ends, merchantIds }, deps)).kind === 'caught-up'
    }
    if (!(await takenIn())) return false
    const fences = await beginAgain(db, fencing)
    for (const raised of fences) await listOpen(here.db, raised)
    const readTopic = async (name: string, onRecord: (record: TopicRecord) => Promise<void>) => {
      for (const record of await this.wait('read', name, async () => kafka.topic(name)))
        await onRecord({ ...record, partition: 0 })
    }
    await readBackPublished(
      fences.map(({ merchantId }) => merchantId),
      { ledger: here, codec, readTopic },
    )
    for (const raised of fences) {
      const { dialect } = this.merchants.get(raised.merchantId) as Merchant
      const graceMs = queryPolicyOf(dialect).graceMs + dialect.leaseMs
      await untilGraceIsOver(raised, graceMs, { db: here.db, clock, signal, onWait: () => undefined })
    }
    if (!(await takenIn())) return false
    for (const raised of fences) await listOpen(here.db, raised)
    let all = true
    for (const raised of fences) {
      const merchant = this.merchants.get(raised.merchantId) as Merchant
      const connected = this.connectAccounts(merchant, here.db)
      await queryOpen(raised, {
        ...{ ledger: here, decisions: DECISIONS, ratePerSecond: RATE_PER_SECOND, who: WHO, clock, signal },
        accounts: askedAccounts(merchant.merchantId, connected, { db: here.db, clock }),
        missing: new Map(),
        onProgress: () => undefined,
      })
      const { kind } = await lowerAfterRecovery(raised, WHO, here)
      all &&= kind === 'recovered'
    }
    return all
  }
}

/** An error because the ledger was set back meanwhile. */
const isGone = (error: unknown): boolean => error instanceof Error && error.message.endsWith(' is gone')
