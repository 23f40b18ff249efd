import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testLedger } from '../../test/ledger.ts'
import { paise } from '../domain/money.ts'
import { adoptSettings } from '../operators/gateway-settings.ts'
import { checkAccounts, checkInForce } from './accounts.ts'

const SETTINGS = new Map([['acme', ['now', 'before']]])
const open = (accountId: string | null, merchantId = 'acme') => ({ merchantId, accountId, count: 3 })

test('open payouts at an account that the settings lack are wrong, and the finding says what to do', () => {
  const gone = checkAccounts([open('now'), open('gone')], SETTINGS)
  assert.deepEqual(
    [gone.state, gone.what],
    ['wrong', 'merchant acme has 3 open at gateway account gone, which its settings do not have'],
  )
  assert.match('todo' in gone ? gone.todo : '', /formerAccounts/)
  const left = checkAccounts([open('now', 'bolt')], SETTINGS)
  assert.deepEqual([left.state, left.what], ['wrong', 'merchant bolt is not in the settings, and has 3 open'])
})

test('a former account is good, and may be removed once nothing is open there and no money can come back', () => {
  const all = 'the settings have every account with open payouts'
  assert.deepEqual(checkAccounts([open('now'), open('before'), open(null)], SETTINGS), {
    state: 'good',
    what: all,
  })
  assert.deepEqual(checkAccounts([open('now')], SETTINGS), {
    state: 'good',
    what:
      `${all}; nothing of merchant acme is open at its former account before: remove it once no transfer from there can come ` +
      'back and no payin can be paid late, because payoutd does not learn of that afterwards',
  })
})

test('settings with which payoutd serve would not start are wrong', async (t) => {
  const { ledger } = await testLedger(t)
  const account = {
    ...{ accountId: 'a', baseUrl: 'https://gateway.example', mchId: '1', keyFingerprint: 'k' },
    ...{ dialectName: 'sandbox', settingsHash: 'one' },
  }
  const acme = { merchantId: 'acme', account, former: [] }
  const found = async (settingsHash: string) =>
    (await checkInForce(ledger.db, [{ ...acme, account: { ...account, settingsHash } }])).state
  assert.equal(await found('two'), 'good')
  const who = { by: 'asha', reason: 'new' }
  await adoptSettings(ledger.db, { ...acme, feeEstimate: paise(0n) }, who, async () => null)
  assert.deepEqual([await found('one'), await found('two')], ['good', 'wrong'])
  const taken = await checkInForce(ledger.db, [{ ...acme, merchantId: 'default' }])
  assert.match(taken.what, /^merchant default: its gateway account, .*, is or was that of merchant acme \(/)
  assert.match('todo' in taken ? taken.todo : '', /^payoutd serve does not start\. .*MERCHANT_ID/)
})

test('two merchants at one account are wrong before both are in force, and a warning afterwards', async (t) => {
  const { ledger } = await testLedger(t)
  const { db } = ledger
  const at = (merchantId: string, accountId: string, keyFingerprint = `key of ${merchantId}`) => ({
    ...{ merchantId, feeEstimate: paise(0n), former: [] },
    account: {
      ...{ accountId, keyFingerprint, baseUrl: 'https://gateway.example', mchId: '1' },
      ...{ dialectName: 'sandbox', settingsHash: merchantId },
    },
  })
  const [acme, globex, bolt] = [at('acme', 'a'), at('globex', 'a'), at('bolt', 'b', 'key of acme')]
  const initech = at('initech', 'c')
  const unused = await checkInForce(db, [acme, globex, initech])
  assert.equal(unused.state, 'wrong')
  assert.match(unused.what, /^merchant acme: .* also that of merchant globex .*; merchant globex: .* acme /)
  const who = { by: 'asha', reason: 'on purpose' }
  for (const each of [acme, initech, globex, bolt]) await adoptSettings(db, each, who, async () => null)
  const shared = await checkInForce(db, [globex, initech])
  assert.deepEqual(shared, {
    state: 'warning',
    what:
      'merchant globex: its gateway account, mchId 1 at https://gateway.example, is also that of merchant acme (the same mchId at ' +
      'this address, or with its key or a former one)',
    todo:
      'the same payroll under both ids would be paid twice: make sure that MERCHANT_ID, or id in the merchants file, is the right ' +
      'one, and take out a former account or key that is not its own',
  })
  assert.match((await checkInForce(db, [bolt])).what, /^merchant bolt: .* is also that of merchant acme \(/)
  assert.equal((await checkInForce(db, [initech])).state, 'good')

  const former = [acme.account]
  const renamed = await checkInForce(db, [{ ...at('Acme', 'd'), former }])
  assert.equal(renamed.state, 'wrong')
  assert.match(
    renamed.what,
    /^merchant Acme: its former gateway account, .* is or was that of merchant acme,/,
  )
  const left = await checkInForce(db, [{ ...initech, former }])
  assert.equal(left.state, 'warning')
  assert.match(left.what, /^merchant initech: its former gateway account, .* is also that of merchant acme,/)
})
