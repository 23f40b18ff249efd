import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { accepted, testLedger } from '../../test/ledger.ts'
import { readMerchant } from '../config/merchants.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { paise } from '../domain/money.ts'
import { type Account, accountOf, withAccount } from '../gateway/dialect/account.ts'
import { loadDialect } from '../gateway/dialect/dialect-file.ts'
import { latestActs } from '../ledger/sql/acts.ts'
import { raiseFence } from '../ledger/sql/fence.ts'
import { noteServer } from '../ledger/sql/server-identity.ts'
import { topicNames } from '../messages/topics.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { kafka, makeTopic, openTransaction, publisher, unique } from '../platform/kafka/kafka.fixture.ts'
import { type Database, sql } from '../platform/postgres/postgres.ts'
import { adoptSettings, demandStartable, previewAdopt, requireInForce } from './gateway-settings.ts'
import { earlierLedger } from './recovery/earlier-ledger.ts'

const ACCOUNT: Account = {
  accountId: 'here',
  baseUrl: 'https://gateway.example',
  mchId: '1000100',
  keyFingerprint: 'k',
  dialectName: 'sandbox',
  settingsHash: 'h',
}
/** Each merchant has an account and a key of its own. */
const configured = (merchantId: string, accountId = `of ${merchantId}`) => ({
  ...{ merchantId, feeEstimate: paise(500n), former: [] },
  account: { ...ACCOUNT, accountId, keyFingerprint: `key of ${merchantId}` },
})
const elsewhere = (merchantId: string, settingsHash: string) => ({
  ...configured(merchantId),
  account: { ...configured(merchantId).account, settingsHash },
})
const FOUND = 'payout.events holds what another ledger published'
const nothing = async () => null
const another = async () => FOUND
const notAsked = () => Promise.reject(new Error('Kafka was asked'))

const merchants = sql<object, { merchantId: string; settingsHash: string; reason: string | null }>`
  select merchant_id, settings_hash, recovering_reason as reason from merchants order by merchant_id`
const fencesOf = async (db: Database) =>
  Object.fromEntries((await db.run(merchants, {})).map(({ merchantId, reason }) => [merchantId, reason]))

/** As serve finds it after migrate: it has recorded the server and has no payouts. */
async function newLedger(t: TestContext) {
  const opened = await testLedger(t)
  await opened.ledger.db.run(noteServer, { systemIdentifier: '1', timeline: 1n, databaseOid: 1n })
  return { ...opened, db: opened.ledger.db }
}

test('the first merchants of a ledger beside empty topics may send, and payoutd does not ask Kafka about later ones', async (t) => {
  const { db, ledger, config } = await newLedger(t)
  assert.equal(await requireInForce(db, configured('acme'), nothing), null)
  assert.equal(await requireInForce(db, configured('acme'), notAsked), null)
  await accepted(ledger, config, [command('p')])
  assert.equal(await requireInForce(db, configured('globex'), notAsked), null)
  assert.deepEqual(await fencesOf(db), { acme: null, globex: null })
})

test('settings that somebody else changed since they were shown are not replaced', async (t) => {
  const { db } = await newLedger(t)
  await requireInForce(db, configured('acme'), nothing)
  const shown = await previewAdopt(db, elsewhere('acme', 'one'))
  const who = { by: 'asha', reason: 'new' }
  assert.equal((await adoptSettings(db, elsewhere('acme', 'two'), who, notAsked)).kind, 'adopted')
  const late = await adoptSettings(db, elsewhere('acme', 'one'), who, notAsked, shown)
  assert.equal(late.kind, 'moved')
  assert.equal((await previewAdopt(db, elsewhere('acme', 'two'))).kind, 'unchanged')
})

test('in an empty ledger beside topics that another ledger filled, every merchant is fenced, whenever it is added', async (t) => {
  const { db, ledger, config } = await newLedger(t)
  assert.equal(await requireInForce(db, configured('acme'), another), FOUND)
  await adoptSettings(db, configured('globex'), { by: 'asha', reason: 'new' }, another)
  await accepted(ledger, config, [command('p')])
  await db.run(
    sql<object>`update merchants set recovering_since = null, recovering_by = null, recovering_reason = null`,
    {},
  )
  assert.equal(await requireInForce(db, configured('initech'), notAsked), FOUND)
  assert.equal(
    await requireInForce(db, configured('acme'), notAsked),
    null,
    'a fence that was taken down stays down',
  )
  assert.deepEqual(await fencesOf(db), { acme: null, globex: null, initech: FOUND })
})

test('what others publish does not fence a merchant who already has settings in a ledger without payouts', async (t) => {
  const { db } = await newLedger(t)
  await requireInForce(db, configured('acme'), nothing)
  assert.equal(await requireInForce(db, configured('acme'), another), null)
})

const oneStep = sql<object, { merchantId: string }>`
  select merchant_id from merchants where recovering_one_step order by 1`

test('a merchant who is new to a ledger with a fenced merchant is fenced too, for the same step of the server', async (t) => {
  const { db, ledger, config } = await newLedger(t)
  await requireInForce(db, configured('acme'), nothing)
  await accepted(ledger, config, [command('p')])
  const fence = { by: 'payoutd', reason: 'a standby took over', feeEstimate: 0n }
  await db.run(raiseFence, { merchantId: 'acme', ...fence })
  const reason = 'acme is fenced as well: a standby took over'
  assert.equal(await requireInForce(db, configured('newcomer'), notAsked), reason)
  assert.deepEqual(await fencesOf(db), { acme: 'a standby took over', newcomer: reason })
  await db.run(sql<object>`update merchants set recovering_one_step = true where merchant_id = 'acme'`, {})
  await requireInForce(db, configured('later'), notAsked)
  assert.deepEqual(await db.run(oneStep, {}), [{ merchantId: 'acme' }, { merchantId: 'later' }])
})

test('if Kafka does not answer, no settings of a new merchant come into force', async (t) => {
  const { db } = await freshDatabase(t)
  const unreachable = () => Promise.reject(new Error('ECONNREFUSED'))
  await assert.rejects(requireInForce(db, configured('acme'), unreachable), /ECONNREFUSED/)
  assert.deepEqual(await db.run(merchants, {}), [])
})

test('the end offsets of the topics show whether anything was published', async (t) => {
  const topics = topicNames(`${unique('t')}.`)
  const earlier = earlierLedger(kafka(), topics)
  assert.equal(await earlier(), null, 'without topics')
  for (const topic of Object.values(topics)) await makeTopic(topic, 2)
  const publish = publisher(t)
  await publish(topics.commands, ['a command that came before the first start'])
  assert.equal(await earlier(), null)
  const transaction = await openTransaction(t, [topics.results])
  assert.match((await earlier()) ?? '', /payout\.results has messages that another ledger published/)
  await transaction.abort()
})

test('the first settings come into force in the name of the operator who acts, or of payoutd at a start', async (t) => {
  const { db } = await newLedger(t)
  const act = { by: 'meera', reason: 'disk lost', command: 'recover' }
  await requireInForce(db, configured('acme'), nothing, act)
  await requireInForce(db, configured('globex'), nothing)
  const acts = await db.run(latestActs, { merchantId: null, since: null, limit: 9 })
  assert.deepEqual(
    acts.map(({ merchantId, by, command, reason }) => [merchantId, by, command, reason]),
    [
      ['globex', 'payoutd', 'serve', 'the first gateway settings of this merchant'],
      ['acme', 'meera', 'recover', 'disk lost'],
    ],
  )
})

test("no first settings of a merchant come into force at an account that is or was another merchant's", async (t) => {
  const { db } = await newLedger(t)
  const WHO = { by: 'asha', reason: 'both companies pay from it' }
  await requireInForce(db, configured('acme', 'former'), nothing)
  await adoptSettings(db, elsewhere('acme', 'moved'), WHO, nothing)
  for (const accountId of ['former', 'of acme']) {
    const started = requireInForce(db, configured('default', accountId), nothing)
    await assert.rejects(started, (error: Error) => {
      assert.ok(error instanceof ExpectedFailure)
      assert.match(
        error.message,
        /^merchant default: its gateway account, mchId 1000100 at https:\/\/gateway\.example, is or was that of merchant acme \(.* twice\. Nothing was started\. .*MERCHANT_ID.*payoutd merchant adopt for it/,
      )
      return true
    })
  }
  assert.deepEqual(Object.keys(await fencesOf(db)), ['acme'])
  await requireInForce(db, { ...configured('acme'), account: elsewhere('acme', 'moved').account }, notAsked)

  const back = { ...elsewhere('acme', 'back'), account: { ...ACCOUNT, accountId: 'former' } }
  assert.deepEqual((await previewAdopt(db, back)).others, [], "a merchant's own former account")
  const shared = configured('default', 'of acme')
  assert.deepEqual((await previewAdopt(db, shared)).others, ['acme'])
  const unseen = await adoptSettings(db, shared, WHO, nothing, { before: null, others: [] })
  assert.equal(unseen.kind, 'moved')
  assert.equal((await adoptSettings(db, shared, WHO, nothing)).kind, 'adopted')
  assert.equal(await requireInForce(db, shared, notAsked), null)
})

test('of merchants that start at once at one account, by whichever address, all but one are refused', async (t) => {
  const { db } = await newLedger(t)
  const start = (merchantId: string, mchId: string) => {
    const account = { ...ACCOUNT, mchId, accountId: `${mchId}, reached by ${merchantId}` }
    return requireInForce(db, { ...configured(merchantId), account }, nothing)
  }
  for (let mchId = 0; mchId < 10; mchId++) {
    const ids = ['acme', 'bolt', 'globex', 'initech'].map((name) => `${name}-${mchId}`)
    const starts = await Promise.allSettled(ids.map((id) => start(id, String(mchId))))
    const refused = starts.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []))
    assert.equal(refused.length, ids.length - 1)
    for (const each of refused) assert.match(each, /is or was that of merchant/)
  }
})

test('a refusal after the ledger was set back does not advise putting the former settings back', async (t) => {
  const { db } = await newLedger(t)
  await requireInForce(db, configured('acme'), nothing)
  const started = () => requireInForce(db, elsewhere('acme', 'new'), notAsked)
  await assert.rejects(
    started,
    /Start with the settings in force\. If you mean the change, run payoutd merchant adopt acme /,
  )
  const lost =
    /may have lost the record that these settings were adopted\. If they were in use last, run payoutd merchant adopt acme/
  const recover = { by: 'asha', reason: 'restored', command: 'recover' }
  await assert.rejects(requireInForce(db, elsewhere('acme', 'new'), notAsked, recover), lost)
  await db.run(raiseFence, { merchantId: 'acme', by: 'payoutd', reason: 'set back', feeEstimate: 0n })
  await assert.rejects(started, lost)
})

test('of merchants that start together none has its settings in force if one of them is refused', async (t) => {
  const { db } = await newLedger(t)
  const [acme, globex] = [configured('acme', 'one'), configured('globex', 'one')]
  await assert.rejects(demandStartable(db, [acme, globex, configured('initech')]), (error: Error) => {
    assert.ok(error instanceof ExpectedFailure)
    assert.match(error.message, /^merchant acme: .*is in the settings also that of merchant globex \(/)
    assert.match(error.message, /; merchant globex: .*is in the settings also that of merchant acme \(/)
    assert.doesNotMatch(error.message, /initech/)
    return true
  })
  await demandStartable(db, [configured('initech')], { all: [acme, globex, configured('initech')] })
  await requireInForce(db, acme, nothing)
  await assert.rejects(
    demandStartable(db, [acme, globex]),
    /^Error: merchant globex: .*, is or was that of merchant acme \(/,
  )
  const other = demandStartable(db, [configured('initech'), elsewhere('acme', 'two')])
  await assert.rejects(
    other,
    /^Error: merchant acme: .* Nothing was started\. Start with the settings in force/,
  )
  assert.deepEqual(Object.keys(await fencesOf(db)), ['acme'])
})

test('an account is the same at another address, with one mchId and one key', async (t) => {
  const { db } = await newLedger(t)
  const at = (merchantId: string, baseUrl: string, mchId = '1000100', key = 'secret') => ({
    ...configured(merchantId),
    account: accountOf({
      ...{ baseUrl, mchId, key, formerKeys: [], dialectName: 'sandbox', dialect: loadDialect('sandbox') },
      tls: { caFile: undefined, certFile: undefined, keyFile: undefined },
    }),
  })
  const HERE = 'https://gateway.example'
  await requireInForce(db, at('acme', HERE), nothing)
  for (const address of ['http://gateway.example', `${HERE}.`, `${HERE}:8443`, 'https://203.0.113.7/api']) {
    const started = requireInForce(db, at('default', address), nothing)
    await assert.rejects(started, /is or was that of merchant acme \(/, address)
    const together = demandStartable(db, [at('bolt', address, '7'), at('globex', HERE, '7')])
    await assert.rejects(together, /merchant bolt: .* also that of merchant globex/, address)
  }
  await requireInForce(db, at('globex', `${HERE}:8443`, '1000100', 'another'), nothing)
  await requireInForce(db, at('initech', HERE, '1000200'), nothing)
})

/** A merchant as in the merchants file, with its account and its former ones. */
const inFile = (id: string, gateway: object) => {
  const env = { ONE: 'the first key', TWO: 'the second key' }
  const read = readMerchant({ id, dialect: 'sandbox', ...gateway }, env)
  assert.ok('merchant' in read)
  return withAccount(read.merchant)
}
const OLD = { baseUrl: 'https://old.example', mchId: '1000100', key: 'env:ONE', dialect: 'sandbox' }
const NEW = { baseUrl: 'https://new.example', mchId: '2000200', key: 'env:TWO' }

for (const [what, settings, which] of [
  [
    'account, which is a former one now',
    { ...NEW, formerAccounts: [OLD] },
    'former gateway account, mchId 1000100 at https://old.example',
  ],
  [
    'key and address, and the key is a former one now',
    { ...NEW, mchId: OLD.mchId, formerKeys: ['env:ONE'] },
    'gateway account, mchId 1000100 at https://new.example',
  ],
  [
    'account, and a former one has the key as a former one',
    { ...NEW, formerAccounts: [{ ...NEW, mchId: OLD.mchId, formerKeys: ['env:ONE'] }] },
    'former gateway account, mchId 1000100 at https://new.example',
  ],
] as const) {
  test(`a merchant that gets another id and at once another ${what}, is refused`, async (t) => {
    const { db } = await newLedger(t)
    const WHO = { by: 'asha', reason: 'the ledger had forgotten it' }
    const [acme, renamed] = [inFile('acme', OLD), inFile('Acme', settings)]
    const refused = async (started: Promise<unknown>, whose: string) =>
      assert.rejects(started, (error: Error) => {
        assert.ok(error instanceof ExpectedFailure)
        assert.ok(error.message.startsWith(`merchant Acme: its ${which}, ${whose} (`), error.message)
        assert.match(error.message, /take the former account or key out.* payoutd merchant adopt /)
        return true
      })
    await refused(
      demandStartable(db, [renamed], { all: [acme, renamed] }),
      'is in the settings also that of merchant acme',
    )
    await requireInForce(db, acme, nothing)
    await refused(demandStartable(db, [renamed]), 'is or was that of merchant acme')
    await refused(requireInForce(db, renamed, nothing), 'is or was that of merchant acme')
    await adoptSettings(db, inFile('acme', { ...NEW, mchId: '3000300', formerAccounts: [OLD] }), WHO, nothing)
    await refused(requireInForce(db, renamed, nothing), 'is or was that of merchant acme')
    assert.deepEqual(Object.keys(await fencesOf(db)), ['acme'])

    assert.deepEqual((await previewAdopt(db, renamed)).others, ['acme'])
    assert.equal((await adoptSettings(db, renamed, WHO, nothing)).kind, 'adopted')
    await demandStartable(db, [renamed])
    assert.equal(await requireInForce(db, renamed, notAsked), null)
  })
}

test('merchants with former accounts and keys of their own start together', async (t) => {
  const { db } = await newLedger(t)
  const acme = inFile('acme', { ...NEW, formerKeys: ['env:ONE'], formerAccounts: [OLD] })
  const globex = inFile('globex', { ...OLD, mchId: '7', formerAccounts: [{ ...OLD, mchId: '8' }] })
  await demandStartable(db, [acme, globex])
  for (const each of [acme, globex]) assert.equal(await requireInForce(db, each, nothing), null)
  await demandStartable(db, [acme, globex])
})

test('of two merchants that start at once, each with the account of the other as a former one, one is refused', async (t) => {
  const { db } = await newLedger(t)
  for (let i = 0; i < 10; i++) {
    const [one, other] = [
      { ...OLD, mchId: `1${i}` },
      { ...OLD, mchId: `2${i}` },
    ]
    const starts = await Promise.allSettled([
      requireInForce(db, inFile(`acme-${i}`, { ...one, formerAccounts: [other] }), nothing),
      requireInForce(db, inFile(`bolt-${i}`, { ...other, formerAccounts: [one] }), nothing),
    ])
    const refused = starts.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []))
    assert.equal(refused.length, 1)
    assert.match(refused[0] ?? '', /its former gateway account, .* is or was that of merchant /)
  }
})

test('a start with settings that an adoption replaced says so, and since when', async (t) => {
  const { db } = await newLedger(t)
  const who = { by: 'asha', reason: 'new' }
  await requireInForce(db, configured('acme'), nothing)
  await adoptSettings(db, elsewhere('acme', 'two'), who, notAsked)
  const replaced =
    /the settings here are former ones that were replaced at 20\d\d-\S+ \S+Z\. Nothing was started\. Start with the settings in force\./
  await assert.rejects(requireInForce(db, configured('acme'), notAsked), replaced)
  await assert.rejects(requireInForce(db, elsewhere('acme', 'three'), notAsked), (error: Error) => {
    assert.doesNotMatch(error.message, /former/)
    return true
  })
})
