import assert from 'node:assert/strict'
import { createSecretKey, randomBytes } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { ACCOUNT, accepted, payoutsOf, setBalance, testLedger, upsertMerchant } from '../../test/ledger.ts'
import { outboxMessages } from '../../test/outbox-messages.ts'
import type { Config } from '../config/config.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { KeptCallbacks } from '../ledger/callbacks/kept-callbacks.ts'
import { openDetails } from '../ledger/encrypted-details.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { systemClock } from '../platform/running/clock.ts'
import type { SealingKeys } from '../platform/seal.ts'
import { claim } from '../stages/dispatch/claim.ts'
import type { OpenedDetails } from '../stages/dispatch/claim-candidates.ts'
import { WARM } from '../stages/dispatch/merchant-gate.ts'
import { deadLetter, nameOf, openDeadLetter, sealRecord } from '../stages/intake/dead-letter.ts'
import { proveKeys } from './key-proofs.ts'
import { censusOfKeys, retireKeys, rotateKeys, unusedKeys } from './rotate-keys.ts'
import { storedProofs } from './sql/key-proofs.ts'

const sealedRows = sql<object, { payoutId: string; sealed: Buffer }>`
  select payout_id, sealed from payout_commands order by payout_id`
const atFullSpeed = sql<{ warmUp: number }>`update merchants set warm_up = ${'warmUp'}`
const spoil = sql<object>`update payout_commands set sealed = set_byte(sealed, 30, 255 - get_byte(sealed, 30)) where payout_id = 'p0003'`

const payouts = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) =>
    command(`p${String(from + i).padStart(4, '0')}`, {
      accountNo: `5010${String(from + i).padStart(8, '0')}`,
    }),
  )

/** A ledger of payouts sealed with key 1, and a key pair with a second one. */
async function sealed(t: TestContext, count: number) {
  const { ledger, config } = await testLedger(t)
  await accepted(ledger, config, payouts(count))
  const keys: SealingKeys = {
    current: 2,
    keys: new Map([...config.sealing.keys, [2, createSecretKey(randomBytes(32))]]),
  }
  const rotate = (signal = new AbortController().signal, onProgress: () => void = () => undefined) =>
    rotateKeys(ledger.db, keys, { rate: null, clock: systemClock, signal, onProgress })
  const census = async () => Object.fromEntries(await censusOfKeys(ledger.db))
  return { ledger, config, keys, rotate, census }
}

async function assertOpens(ledger: Ledger, keys: SealingKeys): Promise<void> {
  for (const { payoutId, sealed } of await ledger.db.run(sealedRows, {})) {
    const { accountNo } = openDetails({ merchantId: 'acme', payoutId }, sealed, keys)
    assert.equal(accountNo, `5010${payoutId.slice(1).padStart(8, '0')}`)
  }
}

test('the rotation seals every bank detail anew, and only the new key opens it', async (t) => {
  const { ledger, keys, rotate, census } = await sealed(t, 1_200)
  assert.deepEqual(await census(), { 1: 1_200 })
  assert.deepEqual(await rotate(), { resealed: 1_200, others: 0, unopened: new Map(), interrupted: false })
  assert.deepEqual(await census(), { 2: 1_200 })
  await assertOpens(ledger, { current: 2, keys: new Map([...keys.keys].filter(([id]) => id === 2)) })
})

test('an interrupted rotation resumes with the rest', async (t) => {
  const { ledger, keys, rotate, census } = await sealed(t, 1_200)
  const abort = new AbortController()
  const first = await rotate(abort.signal, () => abort.abort())
  assert.equal(first.interrupted, true)
  assert.deepEqual(await census(), { 1: 1_200 - first.resealed, 2: first.resealed })
  const second = await rotate()
  assert.deepEqual([second.resealed, second.interrupted], [1_200 - first.resealed, false])
  assert.ok(first.resealed > 0 && second.resealed > 0)
  assert.equal((await rotate()).resealed, 0)
  await assertOpens(ledger, keys)
})

test('while dispatch claims payouts and intake stores them, each is claimed once, with its own bank details', async (t) => {
  const { ledger, config, keys, rotate } = await sealed(t, 1_500)
  await atSpeed(ledger)
  const claimed: OpenedDetails[] = []
  const dispatch = async (sealing: SealingKeys) => {
    for (;;) {
      const { wave, aside } = await claim(ledger, {
        merchantId: 'acme',
        atMost: 16,
        owner: 'me',
        leaseMs: 60_000,
        limits: { maxInFlight: 10_000, ratePerSecond: null },
        sealing,
        fingerprintKey: config.fingerprintKey,
        account: ACCOUNT,
      })
      assert.deepEqual(aside, [])
      if (wave.length === 0) return
      claimed.push(...wave)
    }
  }
  const takeIn = async () => {
    for (let from = 1_500; from < 2_000; from += 100) await accepted(ledger, config, payouts(100, from))
  }
  const [rotated] = await Promise.all([rotate(), dispatch(keys), takeIn()])
  await dispatch(keys)
  assert.ok(rotated.resealed >= 1_500)
  assert.equal(new Set(claimed.map(({ payout }) => payout.payoutId)).size, 2_000)
  assert.equal(claimed.length, 2_000)
  for (const { payout, details } of claimed) {
    assert.equal(details.accountNo, `5010${payout.payoutId.slice(1).padStart(8, '0')}`)
  }
  await assertOpens(ledger, keys)
})

test('the census has what a process seals with the former key meanwhile, and the next rotation seals it anew', async (t) => {
  const { ledger, config, rotate, census } = await sealed(t, 3)
  await rotate()
  await accepted(ledger, config, payouts(2, 3))
  assert.deepEqual(await census(), { 1: 2, 2: 3 })
  assert.equal((await rotate()).resealed, 2)
  assert.deepEqual(await census(), { 2: 5 })
})

test('what does not open stays as it is and is reported; the others are sealed anew', async (t) => {
  const { ledger, rotate, census } = await sealed(t, 5)
  await ledger.db.run(spoil, {})
  assert.deepEqual(await rotate(), {
    resealed: 4,
    others: 0,
    unopened: new Map([[1, 1]]),
    interrupted: false,
  })
  assert.deepEqual(await census(), { 1: 1, 2: 4 })
})

const refuse = sql<{ origin: string; value: Buffer; position: bigint }>`
  insert into outbox_refused (position, shard, topic, key, event_id, type, value, headers, at, reason)
  values (${'position'}, 0, 't', ${'origin'}, gen_random_uuid(), 'in.payoutd.DeadLetter', ${'value'},
          jsonb_build_object('reason', 'r', 'origin', ${'origin'}::text), now(), 'MESSAGE_TOO_LARGE')`
const half = sql<object>`
  with again as (delete from outbox_refused where position % 2 = 0 returning *)
  insert into outbox (shard, topic, keys, event_ids, types, contents, headers, bytes, at)
  select position % 3, topic, array[key], array[event_id], array[type], array[value], array[headers], octet_length(value), at
  from again`
const allLetters = sql<object, { origin: string; value: Buffer }>`
  select headers->>'origin' as origin, value from outbox_refused
  union all select headers->>'origin', value from ${outboxMessages} where type = 'in.payoutd.DeadLetter'`

const wait = sql<{ origin: string; sealed: Buffer }>`
  insert into waiting_commands (merchant_id, topic, partition, record_offset, origin, sealed)
  values ('acme', 't', 0, 1, ${'origin'}, ${'sealed'})`
const waitingNow = sql<
  object,
  { origin: string; sealed: Buffer }
>`select origin, sealed from waiting_commands`

test('the rotation also seals commands that wait for their merchant’s locks', async (t) => {
  const { ledger, config, keys, rotate, census } = await sealed(t, 3)
  const origin = { topic: 't', partition: 0, logId: null }
  for (let i = 1; i <= 25; i++) {
    const record = { offset: BigInt(i), key: null, value: Buffer.from('x'), headers: {}, timestamp: 1 }
    const sealed = sealRecord(record, origin, config.sealing)
    await ledger.db.run(wait, { origin: nameOf(record, origin), sealed })
  }
  assert.deepEqual(await census(), { 1: 28 })
  const rotated = await rotate()
  assert.deepEqual([rotated.resealed, rotated.others, rotated.unopened.size], [3, 25, 0])
  assert.deepEqual(await census(), { 2: 28 })
  for (const { origin, sealed } of await ledger.db.run(waitingNow, {}))
    assert.equal(openDeadLetter(sealed, origin, withoutFirst(keys)).kind, 'original')
})

test('the rotation also seals kept callbacks and dead letters, refused by Kafka or waiting for it, and only the new key opens them', async (t) => {
  const { ledger, config, keys, rotate, census } = await sealed(t, 3)
  const { db, topics } = ledger
  const keptBy = (sealing: SealingKeys, kind: 'payout' | 'payin') => new KeptCallbacks({ db, sealing, kind })
  const orders = (await payoutsOf(ledger)).map(({ orderNo }) => orderNo)
  for (const orderNo of orders)
    await keptBy(config.sealing, 'payout').keep({ merchantId: 'acme', orderNo, rawQuery: `of ${orderNo}` })
  for (let i = 1; i <= 25; i++) {
    const record = { offset: BigInt(i), key: null, value: Buffer.from('x'), headers: {}, timestamp: 1 }
    const origin = { topic: topics.commands, partition: 0, logId: 'L1' }
    const { key, value } = deadLetter(record, origin, 'r', topics, config.sealing)
    await db.run(refuse, { position: BigInt(i), origin: key, value })
  }
  await db.run(half, {})
  const rotated = await rotate()
  assert.deepEqual([rotated.resealed, rotated.others, rotated.unopened.size], [3, 28, 0])
  assert.deepEqual(await census(), { 2: 31 })
  const onlySecond = withoutFirst(keys)
  const taken: string[] = []
  await keptBy(onlySecond, 'payout').takeUp(['acme'], async (_, rawQuery) => taken.push(rawQuery) > 0)
  assert.deepEqual(
    taken,
    orders.map((orderNo) => `of ${orderNo}`),
  )
  const letters = await db.run(allLetters, {})
  assert.equal(letters.length, 25)
  for (const { origin, value } of letters)
    assert.equal(openDeadLetter(value, origin, onlySecond).kind, 'original')
})

test('the proof of a key can go once it seals nothing, and only then does payoutd start without it', async (t) => {
  const { ledger, config, keys, rotate } = await sealed(t, 3)
  const withSecond = { sealing: keys, fingerprint: config.fingerprintKey }
  await proveKeys(ledger.db, { sealing: config.sealing, fingerprint: config.fingerprintKey })
  await proveKeys(ledger.db, withSecond)
  const unused = async () => unusedKeys(ledger.db, keys, await censusOfKeys(ledger.db))
  assert.deepEqual(await unused(), [])
  await rotate()
  assert.deepEqual(await unused(), [1])
  const onlySecond = withoutFirst(withSecond.sealing)
  await assert.rejects(
    proveKeys(ledger.db, { ...withSecond, sealing: onlySecond }),
    /encryption key 1 was used, but is not in ENCRYPTION_KEYS/,
  )
  await retireKeys(ledger.db, [0, 1], { by: 'asha', reason: 'a new year' })
  assert.deepEqual(
    (await ledger.db.run(storedProofs, {})).map(({ keyId }) => keyId),
    [0, 2],
  )
  await proveKeys(ledger.db, { ...withSecond, sealing: onlySecond })
})

const withoutFirst = ({ keys }: Config['sealing']): SealingKeys => ({
  current: 2,
  keys: new Map([...keys].filter(([id]) => id !== 1)),
})

/** The merchant's balance covers everything, and its canary is over. */
async function atSpeed(ledger: Ledger): Promise<void> {
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await setBalance(ledger.db, 'acme', 10n ** 12n)
  await ledger.db.run(atFullSpeed, { warmUp: WARM })
}
