import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { createServer } from 'node:tls'
import { selfSigned } from '../../../src/gateway/testing-certificate.ts'
import type { TlsFiles } from '../../../src/gateway/transport/connections.ts'
import { systemClock } from '../../../src/platform/running/clock.ts'
import { type FamilyDialect, KEY, MCH_ID, ORDER, startFamilyServer } from './family.fixture.ts'
import type { Findings } from './findings.ts'
import { probe } from './probe.ts'

const [BALANCE, OTHER_BALANCE] = ['/api/agentpay/query_balance', '/api/agentpay/query_order'] as const
const [QUERY, OTHER_QUERY] = ['/api/pay/orderquery', '/api/pay/query_order'] as const

const PLAIN: FamilyDialect = {
  body: 'form',
  algorithm: 'md5',
  sort: 'whole-ignoring-case',
  hexCase: 'upper',
  keySuffix: 'key',
  signsEmptyIn: { requests: false, answers: false },
  signsFailures: true,
  balancePaths: [BALANCE, OTHER_BALANCE],
  payoutQueryPaths: [QUERY, OTHER_QUERY],
}

const ask = (baseUrl: string, knownOrder: string | null = ORDER, key = KEY, tls: TlsFiles = {}) =>
  probe({
    ...{ baseUrl, tls, mchId: MCH_ID, key, knownOrder, clock: systemClock },
    pace: () => Promise.resolve(),
  })

async function findings(
  t: TestContext,
  mode: FamilyDialect,
  knownOrder: string | null = ORDER,
): Promise<Findings> {
  const { url } = await startFamilyServer(t, mode)
  const outcome = await ask(url, knownOrder)
  assert.ok(outcome.kind === 'found', outcome.kind)
  return outcome
}

const shownAs = ({ shown }: Findings, setting: string) =>
  shown.find((each) => each.setting === setting)?.value
const keptIn = ({ kept }: Findings) => kept.map(({ setting }) => setting)
/** What a probe of this gateway did not show, apart from what no probe can. */
const unshown = (found: Findings) =>
  keptIn(found)
    .filter((setting) => !NEVER_SHOWN.includes(setting))
    .sort()

/** Settings that no call of a probe can show. */
const NEVER_SHOWN = [
  ...['sign.emptyFields.callbacks', 'paths.apply', 'paths.payinCreate', 'paths.payinRecovery'],
  ...['retCodes.apply', 'retCodes.query', 'retCodes.payinCreate', 'retCodes.payinQuery'],
  ...['retCodes.payinRecovery', 'duplicateApply', 'vpaAccountNo', 'reqTimeZone'],
]

const both = <T>(a: T, b: T): readonly T[] => [a, b]

function* everyDialect(body: FamilyDialect['body']): Generator<FamilyDialect> {
  for (const algorithm of both<FamilyDialect['algorithm']>('md5', 'hmac-sha256'))
    for (const sort of both<FamilyDialect['sort']>('whole-ignoring-case', 'name'))
      for (const hexCase of both<FamilyDialect['hexCase']>('upper', 'lower'))
        for (const keySuffix of both<FamilyDialect['keySuffix']>('key', 'appSecret'))
          for (const requests of both(false, true))
            for (const answers of both(false, true))
              for (const signsFailures of both(true, false))
                for (const balancePath of both(BALANCE, OTHER_BALANCE))
                  for (const payoutQueryPath of both(QUERY, OTHER_QUERY))
                    yield {
                      ...{ body, algorithm, sort, hexCase, keySuffix, signsFailures },
                      signsEmptyIn: { requests, answers },
                      balancePaths: [balancePath],
                      payoutQueryPaths: [payoutQueryPath],
                    }
}

/** In 64 of the 512, any three of the nine differ in every way (a fractional factorial design, 2^(9-3), of resolution IV). */
const WORDS = [0b111100100, 0b101011010, 0b001111001]
const isEven = (bits: number): boolean => bits.toString(2).replaceAll('0', '').length % 2 === 0
const inFraction = (_: FamilyDialect, index: number): boolean => WORDS.every((word) => isEven(index & word))

const MANNERS: Record<FamilyDialect['body'], FamilyDialect[]> = {
  form: [...everyDialect('form')],
  json: [...everyDialect('json')].filter(inFraction),
  query: [...everyDialect('query')].filter(inFraction),
}

for (const [body, manners] of Object.entries(MANNERS)) {
  test(`with a known order, the probe finds every combination of what harmless calls can show (${body})`, async (t) => {
    const server = await startFamilyServer(t, PLAIN)
    assert.equal(manners.length, body === 'form' ? 512 : 64)
    for (const mode of manners) {
      server.become(mode)
      const outcome = await ask(server.url)
      assert.ok(outcome.kind === 'found', `${outcome.kind}: ${JSON.stringify(mode)}`)
      const { extends: base, ...found } = outcome.dialect
      const { algorithm, sort, hexCase, keySuffix, signsEmptyIn } = mode
      assert.equal(base, 'default')
      assert.deepEqual(found, {
        body: mode.body,
        sign: {
          ...{ algorithm, sort, hexCase, keySuffix },
          emptyFields: signsEmptyIn,
          failures: mode.signsFailures,
        },
        paths: {
          balance: mode.balancePaths[0],
          payoutQuery: mode.payoutQueryPaths[0],
          payinQuery: QUERY,
        },
      })
      assert.deepEqual(unshown(outcome), [])
    }
  })
}

test('the probe sends only balance calls and queries, about no order but the known one and an absent one', async (t) => {
  const server = await startFamilyServer(t, PLAIN)
  await ask(server.url)
  assert.deepEqual(new Set(server.asked.map(({ path }) => path)), new Set([BALANCE, QUERY, OTHER_QUERY]))
  const orders = [...new Set(server.asked.flatMap(({ params }) => params.mchOrderNo ?? []))]
  assert.deepEqual(
    orders.map((order) => String(order).replace(/^PROBE[0-9A-F]{25}$/, 'absent')),
    [ORDER, 'absent'],
  )
  const told = server.asked.filter(({ params }) => params.executeNotify && params.executeNotify !== 'false')
  assert.deepEqual(told, [])
})

test('without a known order, each setting that only its answer would show is listed and keeps the default', async (t) => {
  const found = await findings(t, { ...PLAIN, signsEmptyIn: { requests: true, answers: true } }, null)
  assert.deepEqual(unshown(found), ['paths.payoutQuery', 'sign.emptyFields.answers'])
  assert.deepEqual(new Set(keptIn(found)), new Set([...unshown(found), ...NEVER_SHOWN]))
  assert.equal(found.kept.find(({ setting }) => setting === 'paths.payoutQuery')?.value, QUERY)
  assert.equal(shownAs(found, 'sign.emptyFields.requests'), true)
})

test('without a known order, the path of the payout query is shown only if just one path answers', async (t) => {
  const one = await findings(t, { ...PLAIN, payoutQueryPaths: [QUERY] }, null)
  assert.equal(shownAs(one, 'paths.payoutQuery'), QUERY)
  // The first path answers payin queries in any case.
  const two = await findings(t, { ...PLAIN, payoutQueryPaths: [OTHER_QUERY] }, null)
  assert.ok(unshown(two).includes('paths.payoutQuery'))
})

test('without a known order, a path that takes payout queries for payin queries shows that the other is right', async (t) => {
  const quirks = { needsExecuteNotify: true } as const
  const found = await findings(t, { ...PLAIN, payoutQueryPaths: [OTHER_QUERY], quirks }, null)
  assert.equal(shownAs(found, 'paths.payoutQuery'), OTHER_QUERY)
  assert.deepEqual(found.retCodes.absentOrder, ['2004'])
  const both = await findings(t, { ...PLAIN, quirks }, null)
  assert.ok(unshown(both).includes('paths.payoutQuery'))
  const apart = { ...quirks, payinsApart: true } as const
  const unlike = await findings(t, { ...PLAIN, payoutQueryPaths: [OTHER_QUERY], quirks: apart }, null)
  assert.ok(unshown(unlike).includes('paths.payoutQuery'))
})

test('a known order is found by the gateway’s number too, and an absent one is reported as absent', async (t) => {
  assert.deepEqual((await findings(t, PLAIN, 'AP1')).warnings, [])
  const { warnings, knownOrder } = await findings(t, PLAIN, 'P9')
  assert.equal(knownOrder, 'not-found')
  assert.deepEqual(warnings, ['the gateway found the order of --order at no path'])
})

test('the answers of a gateway that accepts either case show which one it writes', async (t) => {
  const quirks = { anyCase: true, lowerAnswers: true } as const
  assert.equal(shownAs(await findings(t, { ...PLAIN, quirks }), 'sign.hexCase'), 'lower')
})

test('a gateway that accepts either case and signs no answer leaves the case unshown', async (t) => {
  const found = await findings(t, { ...PLAIN, signsFailures: false, quirks: { anyCase: true } }, null)
  assert.ok(unshown(found).includes('sign.hexCase'))
})

test('a gateway that signs answers in another way than requests has no dialect', async (t) => {
  const { url } = await startFamilyServer(t, { ...PLAIN, quirks: { lowerAnswers: true } })
  assert.deepEqual(await ask(url), { kind: 'contradiction' })
})

test('if a gateway refuses unknown parameters, neither the sort nor empty request fields are shown', async (t) => {
  const found = await findings(t, { ...PLAIN, sort: 'name', quirks: { noUnknown: true } })
  assert.deepEqual(unshown(found), ['sign.emptyFields.requests', 'sign.sort'])
})

test('if anybody may see the balance, queries show how the gateway signs, and the probe warns', async (t) => {
  const found = await findings(t, {
    ...PLAIN,
    ...{ algorithm: 'hmac-sha256', hexCase: 'lower', keySuffix: 'appSecret', quirks: { openBalance: true } },
  })
  const shown = ['sign.algorithm', 'sign.hexCase', 'sign.keySuffix'].map((each) => shownAs(found, each))
  assert.deepEqual(shown, ['hmac-sha256', 'lower', 'appSecret'])
  assert.deepEqual(unshown(found), ['sign.emptyFields.requests', 'sign.sort'])
  assert.match(found.warnings.join(), /returns the balance to anybody/)
})

test('the probe separates a wrong signature from an unknown order even if both have the same retCode', async (t) => {
  const found = await findings(t, { ...PLAIN, quirks: { oneCode: true } })
  assert.equal(shownAs(found, 'sign.failures'), true)
  assert.deepEqual(found.retCodes, { absentOrder: ['FAIL'], wrongSignature: ['FAIL'] })
})

test('the probe understands a gateway that answers a wrong signature with HTTP 401', async (t) => {
  const found = await findings(t, { ...PLAIN, quirks: { unauthorized: true } })
  assert.deepEqual(unshown(found), [])
  assert.deepEqual(found.retCodes.wrongSignature, [])
})

test('an unsigned answer about a known order gives a warning', async (t) => {
  const { warnings } = await findings(t, { ...PLAIN, quirks: { unsignedOrder: true } })
  assert.match(warnings.join(), /^the answer about the order of --order has no signature/)
})

test('the probe reports the retCodes received, but enters them in no table', async (t) => {
  const found = await findings(t, PLAIN)
  assert.deepEqual(found.retCodes, { absentOrder: ['2004'], wrongSignature: ['1002'] })
  assert.equal('retCodes' in found.dialect, false)
})

test('with a wrong key the probe finds no dialect, and reports what the gateway said', async (t) => {
  const { url, asked } = await startFamilyServer(t, { ...PLAIN, balancePaths: [BALANCE] })
  const heard = ['retCode 1002', 'HTTP 404', 'retCode 1001']
  assert.deepEqual(await ask(url, ORDER, 'another key'), { kind: 'no-balance', heard })
  // A missing path is tried once per body, the other path with every signature.
  assert.equal(asked.length, 3 * (8 + 1))
})

test('the probe gives up an address that does not answer after one call', async () => {
  assert.deepEqual(await ask('http://127.0.0.1:9'), { kind: 'not-reached', reason: 'connection-refused' })
})

test('a gateway with its own certificate is probed with the merchant’s files, and not without', async (t) => {
  const { url } = await startFamilyServer(t, PLAIN)
  const { cert, key } = selfSigned('gateway.invalid')
  const front = createServer({ cert, key }, (near) => {
    const far = connect(Number(new URL(url).port), '127.0.0.1')
    near.on('error', () => far.destroy()).pipe(far)
    far.on('error', () => near.destroy()).pipe(near)
  }).listen(0, '127.0.0.1')
  await once(front, 'listening')
  const folder = mkdtempSync(path.join(tmpdir(), 'probe-'))
  t.after(() => {
    front.close()
    rmSync(folder, { recursive: true })
  })
  const caFile = path.join(folder, 'ca.pem')
  writeFileSync(caFile, cert)
  const behind = `https://127.0.0.1:${(front.address() as AddressInfo).port}`
  assert.equal((await ask(behind)).kind, 'not-reached')
  assert.equal((await ask(behind, ORDER, KEY, { caFile })).kind, 'found')
})
