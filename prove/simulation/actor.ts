import { AsyncLocalStorage } from 'node:async_hooks'
import pg from 'pg'
import type { Merchant } from '../../src/config/merchants.ts'
import type { Instant } from '../../src/domain/instant.ts'
import type { ConnectedAccount, ConnectedAccounts } from '../../src/gateway/accounts.ts'
import { createGatewayClient } from '../../src/gateway/client.ts'
import { accountOf, callbackKeys, type GatewaySettings } from '../../src/gateway/dialect/account.ts'
import { queryPolicyOf } from '../../src/gateway/dialect/dialect.ts'
import type { SentRequest, Transport } from '../../src/gateway/transport/transport.ts'
import type { WireRequest } from '../../src/gateway/wire/request.ts'
import { watchServer } from '../../src/ledger/failover-watch.ts'
import { mixedAnswers } from '../../src/ledger/mixed-answers.ts'
import type { Topics } from '../../src/messages/topics.ts'
import type { EarlierLedger } from '../../src/operators/recovery/earlier-ledger.ts'
import type { Logger } from '../../src/platform/log.ts'
import type { Database, Sql, Transaction } from '../../src/platform/postgres/postgres.ts'
import type { Codec } from '../../src/platform/registry/codec.ts'
import type { Clock } from '../../src/platform/running/clock.ts'
import type { CommitName } from '../../src/platform/running/crash-points.ts'
import { openAttempts } from '../../src/stages/dispatch/sql/claim.ts'
import type { Kafka } from './kafka.ts'
import type { Postgres } from './postgres.ts'
import { Timers } from './time.ts'

type Claimed = { attempts: readonly { orderNo: string | null }[] }

/**
 * A fault that the simulation causes: a broken connection, a server that is away. Nothing else may throw.
 * PostgreSQL's code for a lost connection makes the product recognize it.
 */
export class ActorFault extends pg.DatabaseError {
  override readonly code = '08006'

  constructor(message: string) {
    super(message, message.length, 'error')
  }
}

/** What an actor waits for: the scheduler decides when it happens, and whether the actor learns of it. */
export type Step = {
  actor: Actor
  kind: 'statement' | 'transaction' | 'send' | 'publish' | 'read'
  name: string
  /** Does it; if `effective` is false, fails as if nothing had come of it. */
  act: (effective: boolean) => Promise<unknown>
  hear: (outcome: { result: unknown } | { error: unknown }) => void
}

/** An actor's environment. */
export type Surroundings = {
  readonly now: Instant
  /** The settings for an actor that starts now. */
  readonly merchants: ReadonlyMap<string, Merchant>
  readonly codec: Codec
  readonly topics: Topics
  readonly uuid: () => string
  readonly kafka: Kafka
  readonly postgres: Postgres
  readonly away: ReadonlySet<'database' | 'kafka' | 'gateway'>
  /** What actors wait for. */
  readonly steps: Step[]
  readonly earlier: EarlierLedger
  setDatabaseClock(): void
  /** It loses its memory. Another process starts in its place. */
  crash(actor: Actor): void
  /** The ledger has changed. */
  change(): void
  /** A request's bytes leave for the account of this mchId. */
  leave(actor: Actor, mchId: string, request: WireRequest): { answered: Promise<SentRequest> }
  /** Something failed that the simulation did not cause. */
  fail(error: unknown): void
}

/** An actor runs the product's code in a simulated world: a process of payoutd, or a person's command. */
export abstract class Actor {
  readonly name: string
  readonly timers: Timers
  readonly clock: Clock
  /** By order number, when it last claimed its payout. */
  readonly claimedAt = new Map<string, Instant>()
  alive = true
  frozen = false
  protected readonly world: Surroundings
  /** The settings it started with. */
  readonly merchants: ReadonlyMap<string, Merchant>

  constructor(name: string, world: Surroundings) {
    const began = world.now
    this.name = name
    this.world = world
    this.merchants = world.merchants
    this.timers = new Timers(() => world.now)
    this.clock = { now: () => world.now, monotonic: () => world.now - began }
  }

  #claims({ attempts }: Claimed): void {
    for (const { orderNo } of attempts) if (orderNo !== null) this.claimedAt.set(orderNo, this.world.now)
  }

  /** Begins; nothing happens before the scheduler lets it. */
  start(): void {
    this.timers.run(() => {
      this.run().catch((error: unknown) => this.world.fail(error))
    })
  }

  protected abstract run(): Promise<void>

  /** Waits until the scheduler lets it happen. An actor that is gone never learns of anything. */
  wait<T>(kind: Step['kind'], name: string, act: (effective: boolean) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (!this.alive) return
      const hear: Step['hear'] = (outcome) => {
        if ('error' in outcome) reject(outcome.error)
        else resolve(outcome.result as T)
      }
      this.world.steps.push({ actor: this, kind, name, act, hear })
    })
  }

  /**
   * The product's database; each statement and transaction is a step of the simulation. After another server has
   * taken over, the next one is on a new connection, which the product checks first.
   */
  database(): Database {
    const { postgres } = this.world
    const watch = watchServer([...this.merchants.keys()], this.log())
    let server: number | null = null
    const connect = async () => {
      this.world.setDatabaseClock()
      if (server === postgres.timeline) return
      await watch(postgres.db)
      server = postgres.timeline
    }
    return {
      run: (statement, params) =>
        this.wait('statement', nameOf(statement), async (effective) => {
          if (!effective) throw new ActorFault('the database is away')
          await connect()
          return postgres.db.run(statement, params)
        }),
      write: (name, statement, params) => this.#transaction(connect, name, (tx) => tx.run(statement, params)),
      transaction: (name, work) => this.#transaction(connect, name, work),
      close: async () => undefined,
    }
  }

  #transaction<T>(
    connect: () => Promise<void>,
    name: CommitName,
    work: (tx: Transaction) => Promise<T>,
  ): Promise<T> {
    const { world } = this
    // Work started here belongs to this actor; what the database's client starts does not.
    const inside = AsyncLocalStorage.snapshot()
    return this.wait('transaction', name, async (effective) => {
      await connect()
      return world.postgres.db.transaction(name, async (tx) => {
        const watched: Transaction = {
          now: tx.now,
          run: (statement, params) => {
            if ((statement as unknown) === openAttempts) this.#claims(params as Claimed)
            if (isChange(statement) && !ROUTINE.test(name)) world.change()
            return tx.run(statement, params)
          },
        }
        const result = await inside(() => work(watched))
        if (!effective) throw new ActorFault('the connection broke before the commit')
        return result
      })
    })
  }

  /** The gateway accounts of a merchant, as the product's own `connectAccounts`, over the simulated transport. */
  protected connectAccounts(
    { merchantId, formerAccounts, ...current }: Merchant,
    db: Database,
  ): ConnectedAccounts {
    const mixedUp = mixedAnswers(merchantId, db, this.log())
    return [
      this.#account(current, mixedUp),
      ...formerAccounts.map((former) => this.#account(former, mixedUp)),
    ]
  }

  #account(settings: GatewaySettings, mixedUp: ReturnType<typeof mixedAnswers>): ConnectedAccount {
    const { baseUrl, mchId, key, dialect } = settings
    const account = accountOf(settings)
    const queryPolicy = queryPolicyOf(dialect)
    const options = {
      ...{ baseUrl, mchId, key, dialect, connections: 1, clock: this.clock },
      mixedUp: (orderNo: string | null) => mixedUp({ baseUrl: account.baseUrl, orderNo }),
    }
    const client = createGatewayClient(options, () => this.#transport(mchId))
    const keys = callbackKeys(settings)
    return { ...account, dialect, keys, client, queryPolicy }
  }

  #transport(mchId: string): Transport {
    return {
      send: async (request, mayStillSend, belongs) => {
        const call = await this.wait('send', request.path, async (effective) => {
          if (!effective || this.world.away.has('gateway')) return 'connection-refused' as const
          return mayStillSend() ? this.world.leave(this, mchId, request) : ('lease-ended' as const)
        })
        if (typeof call === 'string') return { kind: 'not-sent', reason: call, code: call, tookMs: 1 }
        const sent = await call.answered
        return sent.kind === 'answered' && belongs?.(sent) === 'not-ours'
          ? { ...sent, kind: 'lost', reason: 'other-order', code: 'ANSWER_OF_ANOTHER' }
          : sent
      },
      close: async () => undefined,
    }
  }

  /** An error that the simulation did not cause is a bug. */
  protected log(): Logger {
    const none = () => undefined
    const error = (fields: { err?: unknown }, text: string) => {
      if (fields.err !== undefined && !(fields.err instanceof ActorFault)) {
        this.world.fail(new Error(text, { cause: fields.err }))
      }
    }
    const log = {
      debug: none,
      info: none,
      warn: none,
      error,
      fatal: error,
      child: () => log,
    } as unknown as Logger
    return log
  }
}

/** Routine work that changes nothing that others wait for. */
const ROUTINE = /shards$|^keep balance$|^list open payouts$/
const CHANGE = /\b(insert into|delete from|update\s+\w+(\s+\w+)?\s+set)\b/
const isChange = ({ text }: { text: string }): boolean => CHANGE.test(text)
const nameOf = ({ text }: Pick<Sql<object, object>, 'text'>): string =>
  text.trim().replace(/\s+/g, ' ').slice(0, 60)
