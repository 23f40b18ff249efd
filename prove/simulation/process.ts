import { AsyncLocalStorage } from 'node:async_hooks'
import { createSecretKey } from 'node:crypto'
import { Counter, Histogram } from 'prom-client'
import type { Merchant } from '../../src/config/merchants.ts'
import { Dispatch } from '../../src/dispatch/dispatch.ts'
import { releaseHeld } from '../../src/dispatch/sealed.ts'
import { accountOf } from '../../src/gateway/account.ts'
import type { ConnectedAccount } from '../../src/gateway/accounts.ts'
import { readVouched } from '../../src/gateway/callback.ts'
import { createGatewayClient } from '../../src/gateway/client.ts'
import { timetable } from '../../src/gateway/dialect.ts'
import type { WireRequest } from '../../src/gateway/request.ts'
import type { Sent, Transport } from '../../src/gateway/transport.ts'
import { begin } from '../../src/intake/begin.ts'
import { takeIn } from '../../src/intake/intake.ts'
import { KeptCallbacks } from '../../src/ledger/kept-callbacks.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { SHARDS } from '../../src/ledger/messages.ts'
import type { Topics } from '../../src/ledger/topics.ts'
import { askerOf, encoderOf, senderOf } from '../../src/main.ts'
import { requireInForce } from '../../src/operations/gateway-settings.ts'
import type { Instant } from '../../src/payout/instant.ts'
import type { Clock } from '../../src/platform/clock.ts'
import type { CommitName } from '../../src/platform/crash-points.ts'
import { Heartbeats } from '../../src/platform/heartbeats.ts'
import type { HttpServer } from '../../src/platform/http.ts'
import type { Ids } from '../../src/platform/ids.ts'
import type { Codec } from '../../src/platform/kafka/codec.ts'
import type { Standing } from '../../src/platform/kafka/places.ts'
import type { OutgoingRecord } from '../../src/platform/kafka/records.ts'
import type { Logger } from '../../src/platform/log.ts'
import type { Database, Sql, Transaction } from '../../src/platform/postgres.ts'
import { sealingKey } from '../../src/platform/seal.ts'
import { Relay } from '../../src/relay/relay.ts'
import type { Safeguards } from '../../src/safeguards.ts'
import { CallbackDoor } from '../../src/settlement/door.ts'
import { Poller } from '../../src/settlement/poller.ts'
import type { Kafka } from './kafka.ts'
import type { Postgres } from './postgres.ts'
import { Timers } from './time.ts'

/** The simulation's own trouble: a connection that broke, a server that is away. Nothing else may be thrown. */
export class Trouble extends Error {}

/** What a process waits for: the scheduler decides when it happens, and whether the process hears of it. */
export type Step = {
  process: Process
  kind: 'statement' | 'transaction' | 'send' | 'publish'
  name: string
  /** Does it; or, where `effective` is false, fails as it does when nothing came of it. */
  act: (effective: boolean) => Promise<unknown>
  hear: (outcome: { result: unknown } | { error: unknown }) => void
}

/** What a process is in. */
export type Surroundings = {
  readonly now: Instant
  readonly merchants: ReadonlyMap<string, Merchant>
  readonly codec: Codec
  readonly topics: Topics
  readonly ids: Ids
  readonly kafka: Kafka
  readonly postgres: Postgres
  readonly away: ReadonlySet<'database' | 'kafka' | 'gateway'>
  /** What processes wait for. */
  readonly steps: Step[]
  setDatabaseClock(): void
  /** The ledger is another one. */
  change(): void
  /** A request's bytes leave. */
  leave(process: Process, merchant: Merchant, request: WireRequest): { answered: Promise<Sent> }
  /** Something happened that nobody made happen. */
  fail(error: unknown): void
}

/** A part of payoutd that runs again and again. */
export type Loop = {
  name: string
  turn: () => Promise<number>
  busy: boolean
  /** Not before. */
  at: number
  /** Turns since something last happened anywhere. */
  idle: number
}

export const KEYS = {
  sealing: { current: 1, keys: new Map([[1, sealingKey(Buffer.alloc(32, 1))]]) },
  fingerprint: createSecretKey(Buffer.alloc(32, 7)),
}
const IN_FLIGHT = 8
const RECORDS_AT_ONCE = 3

/** Whatever is counted; nobody looks. */
const counted = new Counter({
  name: 'counted',
  help: '-',
  labelNames: ['outcome', 'topic', 'source', 'merchant', 'answer', 'reason'],
  registers: [],
})
const took = new Histogram({ name: 'took', help: '-', registers: [] })

/** One payoutd process: the product's own stages, over a world that is simulated. */
export class Process {
  readonly name: string
  readonly timers: Timers
  alive = true
  frozen = false
  loops: Loop[] = []
  /** Of `payout.commands`, those that it believes to own. */
  readonly partitions: Set<number>
  /** Receives callbacks: answers with the HTTP status. */
  receive: (merchantId: string, rawQuery: string) => Promise<number> = async () => 503
  readonly #world: Surroundings
  readonly #safeguards: Safeguards

  constructor(
    name: string,
    partitions: readonly number[],
    world: Surroundings,
    safeguards: (process: Process) => Safeguards,
  ) {
    this.name = name
    this.partitions = new Set(partitions)
    this.#world = world
    this.timers = new Timers(() => world.now)
    this.#safeguards = safeguards(this)
  }

  /** Waits until the scheduler lets it happen. A process that is gone never hears of anything. */
  wait<T>(kind: Step['kind'], name: string, act: (effective: boolean) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (!this.alive) return
      const hear: Step['hear'] = (outcome) => {
        if ('error' in outcome) reject(outcome.error)
        else resolve(outcome.result as T)
      }
      this.#world.steps.push({ process: this, kind, name, act, hear })
    })
  }

  /** Begins like a process that is started, and then runs its loops. */
  start(): void {
    this.timers.run(() => {
      this.#run().catch((error: unknown) => this.#world.fail(error))
    })
  }

  async #run(): Promise<void> {
    const { merchants, codec, topics, ids, now } = this.#world
    const safeguards = this.#safeguards
    const db = safeguards.connectDatabase({ url: '', connections: 1, applicationName: this.name })
    const ledger: Ledger = { db, topics, ids, encode: encoderOf(codec, topics) }
    const clock: Clock = { now: () => this.#world.now, monotonic: () => this.#world.now - now }
    const log = this.#log()
    const each = [...merchants.values()].map((merchant) => {
      const { baseUrl, mchId, key, dialect } = merchant
      const settings = { baseUrl, mchId, key, dialect, connections: 1, clock }
      const client = createGatewayClient(settings, () => this.#transport(merchant))
      const table = timetable(dialect)
      const account: ConnectedAccount = { ...accountOf(merchant), dialect, keys: [key], client, table }
      return { merchant, account }
    })
    const byMerchant = <T>(of: (one: (typeof each)[number]) => T) =>
      new Map(each.map((one): [string, T] => [one.merchant.merchantId, of(one)]))
    const tables = byMerchant(({ account }) => account.table)
    const settlement = { ledger, judge: safeguards.judge, tables, counted }

    const door = new CallbackDoor({
      ...settlement,
      readers: byMerchant(
        ({ account }) =>
          (rawQuery: string) =>
            readVouched([account], (dialect, key) => safeguards.readCallback(rawQuery, dialect, key)),
      ),
      kept: new KeptCallbacks({ db, sealing: KEYS.sealing, kind: 'payout' }),
      clock,
      log,
      answered: counted,
      took,
    })
    this.receive = receiverOf((server) => door.routes(server))
    const poller = new Poller({
      ...settlement,
      askers: byMerchant(({ account }) => [askerOf(account)] as const),
      control: safeguards.openControl(clock),
      log,
    })
    const publisher = safeguards.createPublisher('relay', { brokers: [] } as never, log)
    const owner = ids.uuid()
    const relay = new Relay({
      db,
      publisherOf: () => publisher,
      owner,
      shards: SHARDS,
      published: counted,
      refused: counted,
      heartbeats: new Heartbeats(),
      log,
    })
    this.#loop('poller', () => poller.turn())
    this.#loop('relay', () => relay.turn(clock.monotonic()))
    this.#intake(ledger, codec, topics, log)

    await this.#untilDone(async () => {
      for (const { merchant, account } of each)
        await requireInForce(db, { ...merchant, account }, async () => null)
      await releaseHeld(ledger)
    })
    const { claim, maySend, judge } = safeguards
    const dispatch = new Dispatch({
      claim,
      maySend,
      judge,
      ledger,
      senders: byMerchant(({ merchant, account }) =>
        senderOf(merchant, account, `https://payoutd.example/${merchant.merchantId}`),
      ),
      tables,
      sealing: KEYS.sealing,
      fingerprintKey: KEYS.fingerprint,
      owner,
      inFlight: IN_FLIGHT,
      clock,
      log,
      answered: counted,
      took,
    })
    this.#loop('dispatch', () => dispatch.turn())
  }

  /** A supervisor starts a process again that could not start. */
  async #untilDone(work: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof Trouble)) throw error
      }
    }
  }

  #intake(ledger: Ledger, codec: Codec, topics: Topics, log: Logger): void {
    const { kafka, merchants } = this.#world
    const places = new Map<number, Standing>()
    const deps = {
      ledger,
      terms: merchants,
      keys: KEYS,
      decode: (value: Buffer | null) => codec.decode(value),
      log,
      counted,
    }
    for (const partition of kafka.commands.keys()) {
      const at = { topic: topics.commands, partition }
      this.#loop(`intake ${partition}`, async () => {
        if (!this.partitions.has(partition)) {
          places.delete(partition)
          return IDLE_MS
        }
        const stored =
          places.get(partition) ??
          (await begin(at, async () => kafka.log(partition), {
            ledger,
            merchantIds: [...merchants.keys()],
            log,
          }))
        // A batch that was not stored is read again from where the store says.
        places.delete(partition)
        const records = kafka.read(partition, stored.offset, RECORDS_AT_ONCE)
        const nextOffset = stored.offset + BigInt(records.length)
        if (records.length > 0) await takeIn({ ...at, records, nextOffset, stored }, deps)
        places.set(partition, { ...stored, offset: nextOffset })
        return records.length > 0 ? 0 : IDLE_MS
      })
    }
  }

  #loop(name: string, turn: () => Promise<number>): void {
    this.loops.push({ name, turn, busy: false, at: 0, idle: 0 })
  }

  /** Runs one turn of a loop, which ends when the scheduler has let all of it happen. */
  turn(loop: Loop): void {
    const world = this.#world
    loop.busy = true
    loop.idle++
    const over = (waitMs: number) => {
      loop.busy = false
      loop.at = world.now + waitMs
    }
    this.timers.run(() => {
      loop.turn().then(over, (error: unknown) => {
        if (!(error instanceof Trouble)) world.fail(error)
        loop.idle = 0
        over(RETRY_MS)
      })
    })
  }

  /** The product's database, each statement and transaction of which is a step of the simulation. */
  database(): Database {
    const { postgres } = this.#world
    const step = <T>(kind: Step['kind'], name: string, work: () => Promise<T>) =>
      this.wait(kind, name, async () => {
        this.#world.setDatabaseClock()
        return work()
      })
    return {
      run: (statement, params) =>
        step('statement', nameOf(statement), () => postgres.db.run(statement, params)),
      write: (name, statement, params) => this.#transaction(name, (tx) => tx.run(statement, params)),
      transaction: (name, work) => this.#transaction(name, work),
      close: async () => undefined,
    }
  }

  #transaction<T>(name: CommitName, work: (tx: Transaction) => Promise<T>): Promise<T> {
    const world = this.#world
    // What the work begins belongs to this process; what the database's client begins does not.
    const inside = AsyncLocalStorage.snapshot()
    return this.wait('transaction', name, (effective) => {
      world.setDatabaseClock()
      return world.postgres.db.transaction(name, async (tx) => {
        const watched: Transaction = {
          now: tx.now,
          run: (statement, params) => {
            if (isChange(statement) && !ROUTINE.test(name)) world.change()
            return tx.run(statement, params)
          },
        }
        const result = await inside(() => work(watched))
        if (!effective) throw new Trouble('the connection broke before the commit')
        return result
      })
    })
  }

  #transport(merchant: Merchant): Transport {
    return {
      send: async (request, mayStillSend) => {
        const call = await this.wait('send', request.path, async (effective) => {
          if (!effective || this.#world.away.has('gateway')) return 'connection-refused' as const
          return mayStillSend() ? this.#world.leave(this, merchant, request) : ('lease-ended' as const)
        })
        if (typeof call === 'string') return { kind: 'not-sent', reason: call, code: call, tookMs: 1 }
        return call.answered
      },
      close: async () => undefined,
    }
  }

  async publish(records: readonly OutgoingRecord[]): Promise<void> {
    await this.wait('publish', 'records', async (effective) => {
      const { kafka } = this.#world
      // Some may be there and some not.
      kafka.published.push(...records.slice(0, effective ? records.length : records.length / 2))
      if (!effective) throw new Trouble('Kafka did not answer')
    })
  }

  /** Whatever is wrong and was not made by the simulation is a bug. */
  #log(): Logger {
    const none = () => undefined
    const error = (fields: { err?: unknown }, text: string) => {
      if (fields.err !== undefined && !(fields.err instanceof Trouble)) {
        this.#world.fail(new Error(text, { cause: fields.err }))
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

const IDLE_MS = 100
const RETRY_MS = 200
/** What is done all the time, and changes nothing that others wait for. */
const ROUTINE = /shards$|^keep balance$/
const CHANGE = /\b(insert into|delete from|update\s+\w+(\s+\w+)?\s+set)\b/
const isChange = ({ text }: { text: string }): boolean => CHANGE.test(text)
const nameOf = ({ text }: Pick<Sql<object, object>, 'text'>): string =>
  text.trim().replace(/\s+/g, ' ').slice(0, 60)

type Route = {
  handler: (request: object, reply: object) => Promise<unknown>
}

/** The handler of the routes that `register` adds, without a socket. */
function receiverOf(register: (server: HttpServer) => void): Process['receive'] {
  let route: Route | undefined
  const scope = {
    removeAllContentTypeParsers: () => undefined,
    route: (added: Route) => {
      route = added
    },
  }
  const server = {
    register: (add: (scope: object, options: object, done: () => void) => void) =>
      add(scope, {}, () => undefined),
  }
  register(server as unknown as HttpServer)
  return async (merchantId, rawQuery) => {
    let status = 0
    const reply = {
      code(given: number) {
        status = given
        return reply
      },
      type: () => reply,
      send: () => reply,
    }
    await route?.handler({ params: { merchantId }, raw: { url: `/callback?${rawQuery}` } }, reply)
    return status
  }
}
