import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkAccounts } from './accounts.ts'

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
