import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { payoutd } from '../../cli.fixture.ts'

const FORGED = 'x\naccepted: the payout is paid\n  agentpayOrderId  AP77'

test('a text of the gateway makes no line of its own, in whichever answer it stands', async (t) => {
  const answer = { retCode: 'FAIL', retMsg: FORGED, errorMessage: FORGED, status: '2' }
  const server = createServer((_, response) => response.end(JSON.stringify(answer))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const at = ['--base-url', url, '--mch-id', '1', '--key', 'kkkkkkkkkkkkkk', '--dialect', 'sandbox']
  const payee = ['--account-no', '50100123456789', '--ifsc', 'HDFC0001234', '--account-name', 'Asha Rao']
  const order = ['--amount', '10000', ...payee, '--notify-url', 'http://a.example/x', '--mch-order-no', 'PX']
  for (const args of [
    ['balance'],
    ['payout', 'query', '--mch-order-no', 'PX'],
    ['payin', 'query', '--mch-order-no', 'PX'],
    ['payout', 'apply', ...order, '--by', 'asha', '--reason', 'a try', '--yes'],
  ]) {
    const { stdout, stderr } = await payoutd(['gateway', ...args, ...at], {})
    assert.match(stdout, /accepted: the payout is paid/, 'the text is shown')
    assert.doesNotMatch(stdout + stderr, /^accepted/m)
  }
})

test('what commander says about a pasted word is escaped', async () => {
  for (const args of [['payout', 'list', '--state', '\u001b[2J'], ['\u001b[2J'], ['serve', '--\u001b[2J']]) {
    const { stderr, code } = await payoutd(args, {})
    assert.equal(code, 1)
    assert.match(stderr, /u001b\[2J/)
    assert.ok(!stderr.includes('\u001b'))
  }
})
