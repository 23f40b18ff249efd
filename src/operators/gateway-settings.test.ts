import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { accepted, testLedger } from '../../test/ledger.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { paise } from '../domain/money.ts'
import type { Account } from '../gateway/dialect/account.ts'
import { latestActs } from '../ledger/sql/acts.ts'
import { raiseFence } from '../ledger/sql/fence.ts'
import { noteServer } from '../ledger/sql/server-identity.ts'
import { topicNames } from '../messages/topics.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { kafka, makeTopic, openTransaction, publisher, unique } from '../platform/kafka/kafka.fixture.ts'
import { type Database, sql } from '../platform/postgres/postgres.ts'
import { adoptSettings, previewAdopt, requireInForce } from './gateway-settings.ts'
import { earlierLedger } from './restore/earlier-ledger.ts'

const ACCOUNT: Account = {
  accountId: 'here',
  baseUrl: 'https://gateway.example',
  mchId: '1000100',
  keyFingerprint: 'k',
  dialectName: 'sandbox',
  settingsHash: 'h',
}
/** Each merchant has an account of its own. */
const configured = (merchantId: string, accountId = `of ${merchantId}`) => ({
  ...{ merchantId, account: { ...ACCOUNT, accountId }, feeEstimate: paise(500n) },
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
  await opened.ledger.db.run(noteServer, { systemIdentifier: '1', timeline: 1n })
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
        /^merchant default: its gateway account, mchId 1000100 at https:\/\/gateway\.example, is or was that of merchant acme\. .* twice\. Nothing was started\. .*MERCHANT_ID.*payoutd merchant adopt/,
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

test('of two merchants that start at once at one account, one is refused', async (t) => {
  const { db } = await newLedger(t)
  const ids = ['acme', 'default', 'acme2', 'acme3']
  const starts = await Promise.allSettled(ids.map((id) => requireInForce(db, configured(id, 'one'), nothing)))
  const refused = starts.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []))
  assert.equal(refused.length, ids.length - 1)
  for (const each of refused) assert.match(each, /is or was that of merchant/)
})

test('a refusal after the ledger was set back does not advise putting the former settings back', async (t) => {
  const { db } = await newLedger(t)
  await requireInForce(db, configured('acme'), nothing)
  const started = () => requireInForce(db, elsewhere('acme', 'new'), notAsked)
  await assert.rejects(started, /Put the former settings back/)
  const lost =
    /may have lost the record that these settings were adopted\. If they were ever in use, run payoutd merchant adopt acme/
  const recover = { by: 'asha', reason: 'restored', command: 'recover' }
  await assert.rejects(requireInForce(db, elsewhere('acme', 'new'), notAsked, recover), lost)
  await db.run(raiseFence, { merchantId: 'acme', by: 'payoutd', reason: 'set back', feeEstimate: 0n })
  await assert.rejects(started, lost)
})
