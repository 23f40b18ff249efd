import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { besideSandbox } from '../../test/reconcile.ts'
import { payoutd } from './cli.fixture.ts'

/** One whose grace is a second. */
const QUICK = { GATEWAY_DIALECT: path.join(import.meta.dirname, '../../test/quick-dialect.json') }
const WHO = ['--by', 'asha', '--reason', 'disk lost']

test('a recovery says what it would do, does it, tells what it found, and may be repeated', async (t) => {
  const { env: settings, send, ended, orderNo } = await besideSandbox(t)
  const env = { ...settings, ...QUICK }
  assert.equal((await payoutd(['migrate', ...WHO], env)).code, 0)
  await send('p-1')
  await ended(orderNo('p-1'))

  const dry = await payoutd(['recover', ...WHO, '--dry-run'], env)
  assert.equal(dry.code, 0)
  assert.match(dry.stdout, /^acme would be fenced, .* 1 by now; 0 messages .*; nothing was done\n$/)
  assert.doesNotMatch((await payoutd(['merchants'], env)).stdout, /recovering/)

  const done = await payoutd(['recover', ...WHO, '--yes', '--json'], env)
  assert.equal(done.code, 0, done.stderr)
  assert.deepEqual(JSON.parse(done.stdout), {
    merchants: [
      { merchantId: 'acme', ending: 'all-asked', kind: 'recovered', findings: [{ found: 'paid', count: 1 }] },
    ],
    done: true,
  })
  const again = await payoutd(['recover', ...WHO, '--yes', '--merchant', 'acme'], env)
  assert.equal(again.code, 0, again.stderr)
  assert.match(again.stdout, /^acme: all 0 payouts .* sending goes on\n/)
})

test('a gateway that tells nothing leaves the merchant fenced, with exit code 1; a stranger is named', async (t) => {
  const { env: settings, send, ended, orderNo } = await besideSandbox(t)
  const env = { ...settings, ...QUICK }
  assert.equal((await payoutd(['migrate', ...WHO], env)).code, 0)
  await send('p-1')
  await ended(orderNo('p-1'))
  const faults = `${settings.GATEWAY_BASE_URL}/_sandbox/faults`
  const body = JSON.stringify({ fault: '500', operation: 'queryPayout', percent: 100 })
  const headers = { 'content-type': 'application/json' }
  assert.equal((await fetch(faults, { method: 'POST', headers, body })).status, 201)
  const { code, stdout } = await payoutd(['recover', ...WHO, '--yes'], env)
  assert.equal(code, 1)
  assert.match(
    stdout,
    /^acme stays fenced: the gateway did not tell of all .*; the same command goes on\n {2}1 not/,
  )
  assert.match((await payoutd(['merchants'], env)).stdout, /acme +recovering/)
  await fetch(faults, { method: 'DELETE' })
  assert.equal((await payoutd(['recover', ...WHO, '--yes'], env)).code, 0)

  const stranger = await payoutd(['recover', ...WHO, '--merchant', 'bolt'], env)
  assert.deepEqual(
    [stranger.code, stranger.stderr],
    [1, 'no merchant is called bolt: the settings have acme\n'],
  )
})
