import assert from 'node:assert/strict'
import { createSecretKey } from 'node:crypto'
import { test } from 'node:test'
import pg from 'pg'
import { PresenceCheck } from '../src/gateway/presence-check.ts'
import { merchantsWithLost } from '../src/ledger/callbacks/sql/lost-callbacks.ts'
import { detailsContext } from '../src/ledger/encryption-contexts.ts'
import type { Ledger } from '../src/ledger/ledger.ts'
import { merchantsWithOpen, openPage } from '../src/ledger/sql/open-payouts.ts'
import { type PayinPollerDeps, payinPoller } from '../src/payins/poller.ts'
import { silentLogger } from '../src/platform/log.ts'
import { type Database, type Sql, signing } from '../src/platform/postgres/postgres.ts'
import { Rounds } from '../src/platform/postgres/rounds.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { type SealingKeys, seal } from '../src/platform/seal.ts'
import { openByAccount } from '../src/queries/open-by-account.ts'
import { payoutsAwaitingKey } from '../src/stages/dispatch/sql/undecryptable.ts'
import { KeyTrial } from '../src/stages/dispatch/undecryptable.ts'
import { whoWaits } from '../src/stages/intake/sql/waiting.ts'
import { processWaiting, type WaitingDeps } from '../src/stages/intake/waiting-commands.ts'
import { type PayoutPollerDeps, payoutPoller } from '../src/stages/outcomes/payout-poller.ts'

const MERCHANTS = Array.from({ length: 60 }, (_, i) => ({ merchantId: `m${i}` }))
const queriers = new Map(MERCHANTS.map(({ merchantId }) => [merchantId, []]))
const presenceCheck = new PresenceCheck(systemClock)
const log = silentLogger
const KEYS: SealingKeys = { current: 1, keys: new Map([[1, createSecretKey(Buffer.alloc(32, 1))]]) }

function sealedPayout({ merchantId }: { merchantId: string }) {
  const payout = { merchantId, payoutId: 'p' }
  return { ...payout, sealed: seal(Buffer.from('{}'), detailsContext(payout), KEYS) }
}

/** Every merchant has an item in each of these lists. */
const LISTS = new Map<string, object[]>([
  [merchantsWithLost.name, MERCHANTS],
  [payoutsAwaitingKey.name, MERCHANTS.map(sealedPayout)],
  [whoWaits.name, MERCHANTS.map((each) => ({ ...each, topic: 'commands', partition: 0 }))],
  [merchantsWithOpen.name, MERCHANTS],
  [openPage.name, []],
])

type SilentTurn = (db: Database, sign: () => void) => Promise<unknown>

/** A turn of each loop that goes through merchants. */
const LOOPS: Record<string, SilentTurn> = {
  'lost callbacks': (db, sign) =>
    payoutPoller({ ledger: { db }, queriers, presenceCheck, log } as unknown as PayoutPollerDeps).queryLost(
      sign,
    ),
  'lost payin callbacks': (db, sign) =>
    payinPoller({
      ledger: { db },
      queriers,
      presenceCheck,
      log,
    } as unknown as PayinPollerDeps).queryLost(sign),
  'payouts that waited for a key': (db, sign) => new KeyTrial({ db } as Ledger, KEYS, log).turn(sign),
  'commands that wait': (db, sign) =>
    processWaiting({
      ledger: { db: signing(sign, db) },
      rounds: new Rounds(),
      stuckSince: new Map(),
      log,
    } as unknown as WaitingDeps),
  'open accounts': (db, sign) => openByAccount(signing(sign, db)),
}

/** Answers with the lists, and fails on every other statement. */
function failingWith(code: string) {
  const asked = { times: 0, sinceSign: 0, mostSinceSign: 0 }
  const ask = async (statement?: Sql<never, never>): Promise<never> => {
    asked.times++
    asked.mostSinceSign = Math.max(asked.mostSinceSign, ++asked.sinceSign)
    await new Promise(setImmediate)
    const list = LISTS.get(statement?.name ?? '')
    if (!list) throw Object.assign(new pg.DatabaseError('no', 0, 'error'), { code })
    return list as never
  }
  const db: Database = {
    run: (statement) => ask(statement as never),
    write: (_, statement) => ask(statement as never),
    transaction: () => ask(),
    close: async () => undefined,
  }
  const sign = () => {
    asked.sinceSign = 0
  }
  return { db, asked, sign }
}

for (const [name, turn] of Object.entries(LOOPS)) {
  test(`the loop "${name}" is silent no longer than a few statements take, however many merchants there are`, async () => {
    const { db, asked, sign } = failingWith('23514')
    await turn(db, sign).catch(() => undefined)
    assert.ok(asked.times > MERCHANTS.length, `${asked.times} statements`)
    assert.ok(asked.mostSinceSign <= 4, `${asked.mostSinceSign} statements without a sign of life`)
  })
}

for (const name of ['lost callbacks', 'lost payin callbacks', 'commands that wait']) {
  test(`a turn of the loop "${name}" ends if the database is away`, async () => {
    const { db, asked, sign } = failingWith('57P01')
    await assert.rejects(LOOPS[name]?.(db, sign) as Promise<unknown>, { code: '57P01' })
    assert.equal(asked.times, 2)
  })
}
