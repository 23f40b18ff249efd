import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { startServer } from '../../../gateway/testing.ts'
import { payoutdAlone } from '../../cli.fixture.ts'

/** Runs `payoutd gateway …args`, and sends it `signal` once its call to `afterPath` has arrived, which is never answered. */
async function interrupt(t: TestContext, args: readonly string[], afterPath: string, signal: NodeJS.Signals) {
  const running: { child?: ChildProcess } = {}
  const { url } = await startServer(t, ({ path }, response) => {
    if (path === afterPath) running.child?.kill(signal)
    else
      response.end(
        '{"retCode":"SUCCESS","amount":1,"frozenAmount":0,"availableAmount":1,"pendingAmount":0,"unsettledAmount":0}',
      )
  })
  const account = ['--base-url', url, '--mch-id', '1000100', '--key', 'a-key-of-this-test']
  return payoutdAlone(['gateway', ...args, ...account], {}, '', (child) => {
    running.child = child
  })
}

const ORDER = ['--mch-order-no', 'T1', '--amount', '10000', '--notify-url', 'http://127.0.0.1:9/callbacks']

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`the outcome of a payout that ${signal} interrupts is unknown, with what to query and exit code 2`, async (t) => {
    const apply = [
      'payout',
      'apply',
      ...WHO,
      ...ORDER,
      '--account-no',
      '50100123456789',
      '--ifsc',
      'HDFC0001234',
    ]
    const { code, stdout } = await interrupt(t, [...apply, '--yes'], '/api/agentpay/apply', signal)
    assert.equal(code, 2)
    assert.match(
      stdout,
      /^unknown: interrupted.*; query it with payoutd gateway payout query --mch-order-no T1\n$/,
    )
  })
}

const WHO = ['--by', 'asha', '--reason', 'a trial']

test('the outcome of an interrupted payin is unknown, for programs too', async (t) => {
  const create = ['payin', 'create', ...WHO, ...ORDER, '--json']
  const { code, stdout } = await interrupt(t, create, '/api/pay/neworder', 'SIGINT')
  assert.equal(code, 2)
  const next = 'query it with payoutd gateway payin query --mch-order-no T1'
  assert.deepEqual(JSON.parse(stdout), { kind: 'unknown', reason: 'interrupted', next })
})

test('an interrupted recovery names the payin to query', async (t) => {
  const recover = ['payin', 'recover', ...WHO, '--pay-order-id', 'PI1', '--utr', '412345678901']
  const { code, stdout } = await interrupt(t, recover, '/api/pay/replace', 'SIGINT')
  assert.equal(code, 2)
  assert.match(stdout, /; query it with payoutd gateway payin query --pay-order-id PI1\n$/)
})

test('an interrupted conformance run shows what it found so far', async (t) => {
  const { code, stdout } = await interrupt(t, ['conformance', ...WHO, '--yes'], '/api/pay/neworder', 'SIGINT')
  assert.equal(code, 2)
  assert.match(stdout, /^\d+ hold, \d+ differ, .*\ninterrupted after \d+ of \d+ cases\n$/m)
})
