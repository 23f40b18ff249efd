import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { payoutd, payoutdAlone } from '../../cli.fixture.ts'

const env = { K: 'a-key-of-this-test' }
const md5 = (text: string) => createHash('md5').update(text).digest('hex')

/** Sorted by name already; `bank1` comes before `bank` only if whole strings are sorted. */
const FIELDS = 'amount=10000&bank=x&bank1=y&channelPayNo=412345678901&mchOrderNo=P1&status=2'
const BY_WHOLE = 'amount=10000&bank1=y&bank=x&channelPayNo=412345678901&mchOrderNo=P1&status=2'
const verify = (query: string, sign: string, ...args: string[]) =>
  payoutd(
    ['gateway', 'verify', `https://m.example/notify?${query}&sign=${sign}`, '--key-env', 'K', ...args],
    env,
  )

test('a callback signed with the key verifies, from an argument or from stdin', async () => {
  const sign = md5(`${BY_WHOLE}&key=${env.K}`).toUpperCase()
  const { code, stdout } = await verify(FIELDS, sign)
  assert.equal(code, 0)
  assert.match(stdout, /^the signature verifies\n {2}amount +10000\n/)
  const piped = await payoutdAlone(
    ['gateway', 'verify', '--key-env', 'K', '--json'],
    env,
    `${FIELDS}&sign=${sign}\n`,
  )
  assert.equal(piped.code, 0)
  assert.deepEqual(JSON.parse(piped.stdout).verifies, true)
})

test('for a callback signed in another way, the command names each setting that differs, and no more', async () => {
  const { code, stdout } = await verify(FIELDS, md5(`${FIELDS}&appSecret=${env.K}`))
  assert.equal(code, 1)
  assert.deepEqual(stdout.trimEnd().split('\n'), [
    'the signature does not verify in this dialect; it would verify with',
    '  sign.hexCase    lower instead of upper',
    '  sign.keySuffix  appSecret instead of key',
    '  sign.sort       name instead of whole-ignoring-case',
  ])
})

test('an empty field that was signed is named as such', async () => {
  const query = 'amount=10000&errorMessage='
  const { stdout } = await verify(query, md5(`${query}&key=${env.K}`).toUpperCase())
  assert.match(stdout, /\n {2}sign\.emptyFields\.callbacks {2}true instead of false\n$/)
})

test('a changed value verifies in no dialect, and no output contains the key', async () => {
  const sign = md5(`${BY_WHOLE}&key=${env.K}`).toUpperCase()
  const { code, stdout, stderr } = await verify(FIELDS.replace('10000', '90000'), sign)
  assert.equal(code, 1)
  assert.match(stdout, /does not verify in any known dialect/)
  assert.ok(!`${stdout}${stderr}`.includes(env.K))
})

test('an extra parameter is named', async () => {
  const sign = md5(`${BY_WHOLE}&key=${env.K}`).toUpperCase()
  const { code, stdout } = await verify(`tenant=acme&${FIELDS}`, sign)
  assert.deepEqual(
    [code, stdout],
    [1, 'the signature does not verify; it would verify without the parameter tenant\n'],
  )
  const other = await verify(`tenant=acme&${FIELDS}`, sign.toLowerCase())
  assert.match(
    other.stdout,
    /without the parameter tenant and with\n {2}sign\.hexCase {2}lower instead of upper\n$/,
  )
})

test('the command names a setting rather than an extra parameter', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'payoutd-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const dialect = path.join(folder, 'dialect.json')
  writeFileSync(dialect, '{"extends":"default","sign":{"emptyFields":{"callbacks":true}}}')
  const sign = md5(`amount=10000&key=${env.K}`).toUpperCase()
  const { stdout } = await verify('amount=10000&errorMessage=', sign, '--dialect', dialect)
  assert.match(stdout, /it would verify with\n {2}sign\.emptyFields\.callbacks {2}false instead of true\n$/)
})

test('programs get the settings under their names in the dialect', async () => {
  const query = 'amount=10000&errorMessage='
  const { stdout } = await verify(query, md5(`${query}&key=${env.K}`), '--json')
  assert.deepEqual(JSON.parse(stdout), {
    verifies: false,
    settings: { 'sign.hexCase': 'lower', 'sign.emptyFields.callbacks': true },
    without: null,
  })
})

test('a callback without a signature is reported as unsigned', async () => {
  for (const sign of ['', '&sign=']) {
    const { code, stdout } = await payoutd(
      ['gateway', 'verify', `https://m.example/notify?${FIELDS}${sign}`, '--key-env', 'K'],
      env,
    )
    assert.deepEqual([code, stdout], [1, 'it has no sign parameter, so there is no signature to verify\n'])
  }
})

test('the command accepts the same account options as the other commands', async () => {
  const sign = md5(`${BY_WHOLE}&key=${env.K}`).toUpperCase()
  const account = ['--base-url', 'https://gateway.example', '--mch-id', '1000100']
  assert.equal((await verify(FIELDS, sign, ...account)).code, 0)
})

test('input that is no callback is reported as such', async () => {
  const { code, stdout } = await verify('amount=1&amount=2', 'x', '--json')
  assert.equal(code, 1)
  assert.deepEqual(JSON.parse(stdout), { verifies: false, malformed: 'repeated-parameter' })
})
