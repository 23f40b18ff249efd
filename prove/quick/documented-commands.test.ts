import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { wholeProgram } from '../../bin/program.ts'
import { startInstallation } from '../../devkit/local/demo/installation.ts'
import { Gateway } from '../../devkit/oracle/gateway-books.ts'
import { payoutdAlone } from '../../src/cli/cli.fixture.ts'
import { topicNames } from '../../src/messages/topics.ts'
import { publisher, unique } from '../../src/platform/kafka/kafka.fixture.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { connectDatabase, sql } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { codeLines, GUIDES, root, wordsOf } from '../../test/command-lines.ts'
import quickDialect from '../../test/quick-dialect.json' with { type: 'json' }

/** The lines that are not run, and why. */
const LEFT_OUT: readonly (readonly [RegExp, string])[] = [
  [
    /^(npm run payoutd -- |payoutd )serve/,
    'it runs until it is stopped; the installation of this test has one',
  ],
  [/^npm run (up|demo)\b/, 'prove/quick/demo.test.ts runs the same'],
  [/^npm (test|run (check|test:whole|test:devkit|prove:quick))$/, 'CI runs them'],
  [/^npm run examples /, 'devkit/local/example/example.test.ts'],
  [/^npm (pack|install -g)/, 'prove/quick/package.test.ts'],
  [/^npx node --test /, 'a test file of its own'],
  [/^docker /, 'needs Docker; test/compose.test.ts'],
  [/^(create (role|database) |export )/, 'no command of payoutd'],
]

/** The lines that rightly exit with 1 here, and what they say: paid, nothing to open, and a statement without a line. */
const FAILING: readonly (readonly [RegExp, RegExp])[] = [
  [/payout cancel --batch november /, /had already ended/],
  [/recover --nothing-lost/, /nothing was done, it is not fenced/],
  [/reconcile .*--statement november\.csv/, /not-in-statement/],
]

const WHO = ['--by', 'asha', '--reason', 'a trial']
const NOVEMBER = 'examples/payroll-2026-11.csv'
const BONUS_ROWS = 4

/** Nobody promised that duplicates are refused: a payout that the gateway does not find goes to review. */
const DIALECT = {
  ...quickDialect,
  duplicateApply: 'unknown',
  queryAfterMs: [500, 500, 500],
  leaseMs: 5_000,
  absence: { graceMs: 5_500, confirmations: 1 },
}

const program = await wholeProgram()

/** What a line hands to payoutd, or null for another line. */
function argumentsOf(text: string): string[] | null {
  const line = text
    .replace(/^npm run payoutd -- /, 'payoutd ')
    .replace(/^npm run ingest -- /, 'payoutd ingest ')
  const [first, ...words] = wordsOf(line).map((word) => word.replace(/^(["'])(.*)\1$/, '$2'))
  return first === 'payoutd' ? words : null
}

/** With `--yes` if it would ask, and what it then needs (docs/how-to/decide-about-a-payout.md). */
function answered(words: readonly string[]): string[] {
  let command = program
  for (const word of words) command = command.commands.find((each) => each.name() === word) ?? command
  const asks = command.options.some(({ long }) => long === '--yes') && !words.includes('--dry-run')
  const isAboutAttempt = words[0] === 'payout' && (words.includes('--failed') || words.includes('--resend'))
  return [
    ...words,
    ...(asks ? ['--yes'] : []),
    ...(isAboutAttempt ? ['--attempt', '1'] : []),
    ...(words.includes('--resend') ? ['--confirmed-absent-by', 'R. Iyer'] : []),
  ]
}

/** The files that the documents name, where commands also leave theirs. */
function folderOfReader(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'documented-'))
  process.chdir(folder)
  t.after(() => process.chdir(root))
  mkdirSync('examples')
  cpSync(path.join(root, NOVEMBER), NOVEMBER)
  writeFileSync(
    'bonus.csv',
    readFileSync(NOVEMBER, 'utf8')
      .split('\n')
      .slice(0, 1 + BONUS_ROWS)
      .join('\n'),
  )
  const salary = Array.from({ length: 1_000 }, (_, i) => String(i + 1).padStart(6, '0'))
  const rows = salary.map((n) => `EMP${n},50100${n},HDFC0001234,54321\n`)
  writeFileSync('salary.csv', `reference,account_no,ifsc,amount\n${rows.join('')}`)
  writeFileSync('november.csv', 'utr,amount\n')
  writeFileSync('lines.jsonl', '{"key":"k","params":{"amount":"1"}}\n')
  writeFileSync('dialect.json', JSON.stringify(DIALECT))
  return folder
}

async function installed(t: TestContext) {
  const folder = folderOfReader(t)
  const name = unique('documented')
  const { settings, stop } = await startInstallation({
    ...{ dir: path.join(folder, '.payoutd'), fresh: true, ports: 'any', log: silentLogger },
    onStep: () => undefined,
    given: {
      KAFKA_BROKERS: process.env.TEST_KAFKA_BROKERS,
      SCHEMA_REGISTRY_URL: process.env.TEST_SCHEMA_REGISTRY_URL,
    },
    settings: {
      TOPIC_PREFIX: `${name}.`,
      TOPIC_PARTITIONS: '1',
      KAFKA_GROUP: name,
      GATEWAY_DIALECT: path.join(folder, 'dialect.json'),
      LOG_LEVEL: 'warn',
    },
  })
  t.after(stop)
  const { DATABASE_URL: url = '', GATEWAY_BASE_URL: gatewayUrl = '', GATEWAY_MCH_ID: mchId = '' } = settings
  const db = connectDatabase({ url, connections: 1, applicationName: 'payoutd-test' })
  t.after(() => db.close())
  const env = { ...settings, KEY: settings.GATEWAY_KEY, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }
  const run = (words: readonly string[], input = '') => payoutdAlone(words, env, input)
  const json = async (...words: string[]) => {
    const { stdout } = await run([...words, '--json'])
    return stdout.split(/\n(?=\{)/).flatMap((text) => (text.trim() ? [JSON.parse(text)] : []))
  }
  return { settings, db, run, json, gatewayUrl, mchId }
}

type Installed = Awaited<ReturnType<typeof installed>>

const count = async ({ db }: Installed, what: string): Promise<number> => {
  const [row] = await db.run(sql<object, { n: bigint }>`select count(*) as n from ${{ fragment: what }}`, {})
  return Number(row?.n)
}
const INCOMPLETE = `batches b where rows >
  (select count(*) from payouts p where (p.merchant_id, p.batch_id) = (b.merchant_id, b.batch_id))`
/** A statement is compared with what was paid in its period. */
const paidAtOnce = sql<object>`update payouts set paid_at = accepted_at where state = 'paid'`
const latestRun = sql<object, { id: string }>`
  select reconciliation_id as id from reconciliations order by started_at desc limit 1`

const post = async (url: string, body: object) => {
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  return (await answer.json()) as { untoldUtrs?: string[] }
}

/** All in one pass: what stands in a place may look like the placeholder of another (the 17th second of a moment, `0:17`). */
const PLACEHOLDERS =
  /<(?:id|payinId|payoutId|UTR)>|(?<=payin recover .*--utr )\d+|(?<=release --batch )november|2026-1[12]-01|[PC]2026112100001|sign=…|0:1[78]/g

/** What the placeholders of the documents stand for: each a payout, payin or anomaly in the state that the line is about. */
async function subjects(payoutd: Installed) {
  const { db, run, json, gatewayUrl, mchId, settings } = payoutd
  const payin = async (key: string) =>
    (await json('payin', 'create', '--amount', '50000', '--idempotency-key', key, ...WHO))[0]
  const { payinId, checkout } = await payin('order-1')
  const { untoldUtrs = [] } = await post(`${checkout.payUrl}/pay-untold`, {})
  // A payin that is not found goes to review if those before and after it are.
  const others = [
    await payin('order-2'),
    await payin('order-3'),
    await payin('order-4'),
    await payin('order-5'),
  ].map((each) => each.payinId)
  const lost = others.filter((_, i) => i % 2 === 0)
  const except = [payinId, ...others.filter((each) => !lost.includes(each))]
  const notFound = { fault: 'not-found', operation: 'queryPayin', percent: 100, except }
  await post(`${gatewayUrl}/_sandbox/faults`, notFound)
  await eventually(
    'november to be accepted',
    async () => (await count(payoutd, 'batches')) > 0 && (await count(payoutd, INCOMPLETE)) === 0,
  )
  const from = new Date().toISOString()
  for (const batch of ['bonus', 'bonus-again']) await run(['ingest', 'bonus.csv', '--batch', batch])
  await eventually('the bonuses to be held', async () => {
    return (await count(payoutd, `payouts where batch_id ^@ 'bonus' and state = 'held'`)) === 2 * BONUS_ROWS
  })
  const to = new Date().toISOString()
  for (const [what, least, rows] of [
    ['payouts in review', 3, `payouts where state = 'review'`],
    ['payins in review', lost.length, `payins where state = 'review'`],
    ['contradictions', 1, `anomalies where kind = 'contradiction'`],
  ] as const)
    await eventually(`${least} ${what}`, async () => (await count(payoutd, rows)) >= least)
  const reviews = await json('payout', 'review')
  const [bonus, beside] = await json('payout', 'list', '--batch', 'bonus')
  const [again, thrice] = await json('payout', 'list', '--batch', 'bonus-again')
  const contradiction = (await json('anomaly', 'list')).find(({ kind }) => kind === 'contradiction')
  const [order] = await new Gateway(gatewayUrl, mchId).orders()
  const ids: Record<string, string[]> = {
    'payout resolve': reviews.map(({ payout }) => payout.payoutId),
    'payout release': [bonus.payoutId, thrice.payoutId],
    'payout cancel': [again.payoutId],
    'payout reverse': [contradiction.payoutId],
    'anomaly show': [contradiction.anomalyId],
    'anomaly acknowledge': [contradiction.anomalyId],
    'payin show': [payinId],
    'payin recover': [payinId],
    'payin resolve': lost,
  }
  const sign = hash('md5', `mchId=1000100&key=${settings.GATEWAY_KEY}`).toUpperCase()
  const inTheirPlace: Record<string, string> = {
    '<UTR>': '632611209999',
    '<payoutId>': beside.payoutId,
    november: 'bonus',
    '2026-11-01': from,
    '2026-12-01': to,
    P2026112100001: order?.mchOrderNo ?? '',
    C2026112100001: payinId,
    'sign=…': `sign=${sign}`,
    '0:17': '0:0',
    '0:18': '0:1',
  }
  return async (text: string) => {
    const [command = '', action = ''] = argumentsOf(text) ?? []
    // The payins in review are resolved by then.
    if (command === 'gateway') await fetch(`${gatewayUrl}/_sandbox/faults`, { method: 'DELETE' })
    if (text.includes('--statement')) await db.run(paidAtOnce, {})
    const id = command === 'reconcile' ? (await db.run(latestRun, {}))[0]?.id : undefined
    const meant = (placeholder: string) => {
      if (/^<(id|payinId)>$/.test(placeholder)) return id ?? ids[`${command} ${action}`]?.shift() ?? 'nobody'
      return inTheirPlace[placeholder] ?? untoldUtrs[0] ?? ''
    }
    return text.replace(PLACEHOLDERS, meant)
  }
}

test('every payoutd command of the guides does what its reader expects', { timeout: 170_000 }, async (t) => {
  const payoutd = await installed(t)
  const { run, gatewayUrl, settings } = payoutd
  await run(['ingest', NOVEMBER, '--batch', 'november', '--publish-valid-rows'])
  const { commands } = topicNames(settings.TOPIC_PREFIX ?? '')
  await publisher(t)(commands, ['not a command', 'nor this'])

  // Before any other line: those that create payins would create some that the fault hides, too.
  const stand = await subjects(payoutd)
  // No line of the first guides has a placeholder.
  let isStanding = false

  const lines = GUIDES.flatMap((file) => codeLines(file, readFileSync(path.join(root, file), 'utf8')))
  const found: string[] = []
  const unmet = new Set<RegExp>([...LEFT_OUT, ...FAILING].map(([pattern]) => pattern))
  for (const { at, text } of lines.filter(({ text }) => text !== '')) {
    const [leftOut] = LEFT_OUT.find(([pattern]) => pattern.test(text)) ?? []
    if (leftOut) {
      unmet.delete(leftOut)
      continue
    }
    isStanding ||= text.includes('<')
    const line = (isStanding ? await stand(text) : text).replace('https://gateway.example', gatewayUrl)
    const words = argumentsOf(line)
    if (!words) {
      found.push(`${at}: ${text}: neither run nor left out`)
      continue
    }
    rmSync('gateway-dialect.json', { force: true })
    const [, stdin] = / < (\S+)$/.exec(line) ?? []
    const { code, stdout, stderr } = await run(answered(words), stdin && readFileSync(stdin, 'utf8'))
    const [failing, says] = FAILING.find(([pattern]) => pattern.test(text)) ?? []
    if (failing) unmet.delete(failing)
    const isExpected = says ? code === 1 && says.test(`${stdout}${stderr}`) : code === 0
    if (!isExpected || /^\s+at .+:\d+/m.test(stderr))
      found.push(`${at}: ${text}: ${code}: ${stdout.slice(-500)}${stderr}`)
    if (words[0] === 'ingest')
      await eventually('intake to read the file', async () => (await count(payoutd, INCOMPLETE)) === 0)
  }
  assert.deepEqual(found, [], found.join('\n'))
  assert.deepEqual([...unmet], [], 'no line of a document is like these')
})
