import { createSecretKey } from 'node:crypto'
import { Counter, Histogram } from 'prom-client'
import { encoderOf } from '../../src/app/ledger.ts'
import type { Safeguards } from '../../src/app/safeguards.ts'
import { senderOf } from '../../src/app/start-dispatch.ts'
import { payoutQueriers } from '../../src/app/start-outcomes.ts'
import type { Instant } from '../../src/domain/instant.ts'
import { readVouched } from '../../src/gateway/callbacks/callback.ts'
import { withAccount } from '../../src/gateway/dialect/account.ts'
import { KeptCallbacks } from '../../src/ledger/callbacks/kept-callbacks.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { SHARDS } from '../../src/messages/messages.ts'
import type { Topics } from '../../src/messages/topics.ts'
import { requireInForce } from '../../src/operators/gateway-settings.ts'
import { ExpectedFailure } from '../../src/platform/expected-failure.ts'
import type { HttpServer } from '../../src/platform/http.ts'
import type { Standing } from '../../src/platform/kafka/offsets.ts'
import { RefusedByKafka } from '../../src/platform/kafka/producer.ts'
import type { OutgoingRecord } from '../../src/platform/kafka/records.ts'
import type { Logger } from '../../src/platform/log.ts'
import type { Codec } from '../../src/platform/registry/codec.ts'
import { Heartbeats } from '../../src/platform/running/heartbeats.ts'
import { Dispatch } from '../../src/stages/dispatch/dispatch.ts'
import { KeyTrial } from '../../src/stages/dispatch/undecryptable.ts'
import { Intake } from '../../src/stages/intake/intake.ts'
import { startingOffset } from '../../src/stages/intake/starting-offset.ts'
import { payoutCallbackEndpoint } from '../../src/stages/outcomes/outcomes.ts'
import { payoutPoller } from '../../src/stages/outcomes/payout-poller.ts'
import { Relay } from '../../src/stages/relay/relay.ts'
import { Actor, ActorFault, type Surroundings } from './actor.ts'

/** A part of payoutd that runs again and again. */
export type Loop = {
  name: string
  turn: () => Promise<number>
  busy: boolean
  /** Not before this time. */
  at: number
  /** Turns since anything last happened anywhere. */
  idle: number
  /** This many turns without work show that there is none. */
  restsAfter: number
  /** Failed turns in a row. */
  failures: number
}

export const KEYS = {
  sealing: { current: 1, keys: new Map([[1, createSecretKey(Buffer.alloc(32, 1))]]) },
  fingerprint: createSecretKey(Buffer.alloc(32, 7)),
}
const IN_FLIGHT = 8
const RECORDS_AT_ONCE = 3

/** For every metric; nobody reads it. */
const counted = new Counter({
  name: 'counted',
  help: '-',
  labelNames: ['outcome', 'topic', 'source', 'merchant', 'answer', 'reason'],
  registers: [],
})
const took = new Histogram({ name: 'took', help: '-', registers: [] })

/** One payoutd process: the product's own stages, over a simulated world. */
export class Process extends Actor {
  loops: Loop[] = []
  /** The partitions of `payout.commands` that it believes to own. */
  readonly partitions: Set<number>
  /** Receives callbacks: answers with the HTTP status. */
  receive: (merchantId: string, rawQuery: string) => Promise<number> = async () => 503
  readonly #safeguards: Safeguards

  constructor(
    name: string,
    partitions: readonly number[],
    world: Surroundings,
    safeguards: (process: Process) => Safeguards,
  ) {
    super(name, world)
    this.partitions = new Set(partitions)
    this.#safeguards = safeguards(this)
  }

  protected async run(): Promise<void> {
    const { codec, topics, uuid } = this.world
    const { clock } = this
    const safeguards = this.#safeguards
    const db = safeguards.connectDatabase({ url: '', connections: 1, applicationName: this.name })
    const ledger: Ledger = { db, topics, encode: encoderOf(codec, topics) }
    const log = this.log()
    const each = [...this.merchants.values()].map((merchant) => ({
      merchant,
      accounts: this.connectAccounts(merchant, db),
    }))
    const byMerchant = <T>(of: (one: (typeof each)[number]) => T) =>
      new Map(each.map((one): [string, T] => [one.merchant.merchantId, of(one)]))
    const queryPolicies = byMerchant(({ accounts: [current] }) => current.queryPolicy)
    const outcomeDeps = { ledger, decisions: safeguards.decisions, queryPolicies, counted }

    const endpoint = payoutCallbackEndpoint({
      ...outcomeDeps,
      readers: byMerchant(
        ({ accounts }) =>
          (rawQuery: string) =>
            readVouched(accounts, (dialect, key) => safeguards.readCallback(rawQuery, dialect, key)),
      ),
      kept: new KeptCallbacks({ db, sealing: KEYS.sealing, kind: 'payout' }),
      clock,
      log,
      answered: counted,
      took,
    })
    this.receive = receiverOf((server) => endpoint.routes(server))
    const poller = payoutPoller({
      ...outcomeDeps,
      queriers: byMerchant(({ accounts }) => payoutQueriers(accounts)),
      presenceCheck: safeguards.openPresenceCheck(clock),
      log,
    })
    const publisher = safeguards.createPublisher('relay', { brokers: [] } as never, log)
    const owner = uuid()
    const relay = new Relay({
      ping: async () => undefined,
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
      for (const { merchant } of each) await requireInForce(db, withAccount(merchant), this.world.earlier)
    })
    const { claim, maySend, decisions } = safeguards
    const dispatch = new Dispatch({
      claim,
      maySend,
      decisions,
      ledger,
      senders: byMerchant(({ merchant, accounts: [current] }) =>
        senderOf(merchant, current, `https://payoutd.example/${merchant.merchantId}`),
      ),
      queryPolicies,
      sealing: KEYS.sealing,
      fingerprintKey: KEYS.fingerprint,
      owner,
      inFlight: IN_FLIGHT,
      clock,
      log,
      answered: counted,
      took,
    })
    const keyTrial = new KeyTrial(ledger, KEYS.sealing, log)
    this.#loop('payouts that waited for a key', () => keyTrial.turn(() => undefined))
    // It looks for work every 40 ms, not in every turn.
    this.#loop('dispatch', () => dispatch.turn(), 3)
  }

  /** A supervisor restarts a process that failed to start; one that was refused gets the current settings. */
  async #untilDone(work: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof ExpectedFailure || error instanceof ActorFault)) throw error
        await new Promise((resolve) => this.timers.set(() => resolve(undefined), RESTART_MS))
        if (error instanceof ExpectedFailure) this.world.crash(this)
      }
    }
  }

  #intake(ledger: Ledger, codec: Codec, topics: Topics, log: Logger): void {
    const { merchants } = this
    const { kafka } = this.world
    const places = new Map<number, Standing>()
    const known = new Map<number, Standing>()
    const lookAt = new Map<number, Instant>()
    const deps = {
      ledger,
      terms: merchants,
      keys: KEYS,
      decode: (value: Buffer | null) => codec.decode(value),
      log,
      counted,
    }
    const intake = new Intake(deps)
    for (const partition of kafka.commands.keys()) {
      const at = { topic: topics.commands, partition }
      this.#loop(`intake ${partition}`, async () => {
        if (!this.partitions.has(partition)) {
          places.delete(partition)
          known.delete(partition)
          return IDLE_MS
        }
        if (this.clock.now() >= (lookAt.get(partition) ?? 0)) {
          places.delete(partition)
          lookAt.set(partition, this.clock.now() + LOOK_AGAIN_MS)
        }
        const stored =
          places.get(partition) ??
          (await startingOffset(
            at,
            async () => kafka.log(partition),
            { ledger, merchantIds: [...merchants.keys()], log },
            known.get(partition),
          ))
        known.set(partition, stored)
        // A batch that was not stored is read again from the store's position.
        places.delete(partition)
        const records = kafka.read(partition, stored.offset, RECORDS_AT_ONCE)
        const nextOffset = stored.offset + BigInt(records.length)
        if (records.length > 0) await intake.process({ ...at, records, nextOffset, stored })
        known.set(partition, { ...stored, offset: nextOffset })
        places.set(partition, { ...stored, offset: nextOffset })
        return records.length > 0 ? 0 : IDLE_MS
      })
    }
  }

  #loop(name: string, turn: () => Promise<number>, restsAfter = 1): void {
    this.loops.push({ name, turn, busy: false, at: 0, idle: 0, restsAfter, failures: 0 })
  }

  /** Runs one turn of a loop, which ends when the scheduler has let all of it happen. */
  turn(loop: Loop): void {
    const world = this.world
    loop.busy = true
    loop.idle++
    const over = (waitMs: number) => {
      loop.busy = false
      loop.at = world.now + waitMs
    }
    this.timers.run(() => {
      loop.turn().then(
        (waitMs) => {
          loop.failures = 0
          over(waitMs)
        },
        (error: unknown) => {
          if (!isExpected(error)) world.fail(error)
          loop.idle = 0
          // As in src/platform/running/lifecycle.ts.
          over(Math.min(5_000, 100 * 2 ** loop.failures++))
        },
      )
    })
  }

  async publish(records: readonly OutgoingRecord[]): Promise<void> {
    await this.wait('publish', 'records', async (effective) => {
      const { kafka } = this.world
      // Some may be there and some not.
      const refused = kafka.publish(records.slice(0, effective ? records.length : records.length / 2))
      if (!effective) throw new ActorFault('Kafka did not answer')
      if (refused.length > 0) throw new RefusedByKafka(refused)
    })
  }
}

/** If the ledger was set back, intake reads again because of an error that it handles itself. */
const isExpected = (error: unknown): boolean =>
  error instanceof ActorFault || (error instanceof Error && error.constructor.name === 'LedgerRewound')

/** As in the product's consumer (src/platform/kafka/consumer-session.ts): if nothing arrives, nothing else shows it. */
export const LOOK_AGAIN_MS = 3_000
const IDLE_MS = 100
const RESTART_MS = 1_000
type Route = {
  handler: (request: object, reply: object) => Promise<unknown>
}

/** The handler of the routes that `register` adds, without a socket. */
function receiverOf(register: (server: HttpServer) => void): Process['receive'] {
  let route: Route | undefined
  const scope = {
    removeAllContentTypeParsers: () => undefined,
    addHook: () => undefined,
    addContentTypeParser: () => undefined,
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
