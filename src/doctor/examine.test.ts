import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../platform/running/clock.ts'
import { type Check, type CheckResult, examine, good, warning, wrong } from './examine.ts'

const ADDRESSES = { database: 'db:5432/payouts', kafka: 'kafka:9092', registry: 'http://registry' }

async function findings(checks: Check[], limitMs = 10_000) {
  const reported: { found: CheckResult; left: string[] }[] = []
  const found = await examine(checks, {
    addresses: ADDRESSES,
    limitMs,
    clock: systemClock,
    onFound: (one, left) => reported.push({ found: one, left }),
  })
  return { found, reported }
}

const check = (name: string, run: Check['run'], ...needs: string[]): Check => ({ name, run, needs })
const fails = async () => {
  throw new Error('the socket fell out')
}
const fine = async () => good('fine')

test('a check that fails hides no other', async () => {
  const { found } = await findings([check('Kafka', fails), check('gateway', fine)])
  assert.deepEqual(
    found.map(({ name, finding }) => [name, finding.state]),
    [
      ['Kafka', 'wrong'],
      ['gateway', 'good'],
    ],
  )
})

test('a check that cannot run is reported as unchecked, down the whole chain, and never as good', async () => {
  const { found } = await findings([
    check('database', async () => wrong('it is away', 'start it')),
    check('migrations', fine, 'database'),
    check('rights', fine, 'migrations'),
    check('gateway', fine),
  ])
  assert.deepEqual(
    found.map(({ finding }) => finding.state),
    ['wrong', 'unchecked', 'unchecked', 'good'],
  )
  assert.match(found[2]?.finding.what ?? '', /needs "migrations"/)
})

test('a warning keeps no other check from running', async () => {
  const { found } = await findings([
    check('gateway', async () => warning('plain http', 'use https')),
    check('orders', fine, 'gateway'),
  ])
  assert.equal(found[1]?.finding.state, 'good')
})

test('a check that needs two others names the one that failed', async () => {
  const { found } = await findings([
    check('topics', fine),
    check('migrations', async () => wrong('one is missing', 'run it')),
    check('dead letters', fine, 'topics', 'migrations'),
  ])
  assert.equal(found[2]?.finding.what, 'not checked: it needs "migrations"')
})

test('a check that never ends becomes a finding after its time limit', async () => {
  const { found } = await findings([check('registry', () => new Promise(() => undefined))], 20)
  assert.deepEqual(found[0]?.finding, {
    state: 'wrong',
    what: 'no answer within 0.02 s',
    todo: 'check that it runs and that payoutd can reach it',
  })
})

test('an error of a dependency is reported in words', async () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const { found } = await findings([
    check('database', async () => {
      throw refused
    }),
  ])
  assert.deepEqual(found[0]?.finding, {
    state: 'wrong',
    what: 'the database db:5432/payouts refuses connections',
    todo: 'start it, or correct DATABASE_URL',
  })
})

test('findings are reported and returned in the order of the list, with the checks still under way', async () => {
  const first = Promise.withResolvers<void>()
  const { found, reported } = await findings([
    check('slow', async () => {
      await first.promise
      return good('at last')
    }),
    check('quick', async () => {
      setImmediate(first.resolve)
      return good('at once')
    }),
    check('last', async () => {
      await first.promise
      await new Promise(setImmediate)
      return good('in the end')
    }),
  ])
  assert.deepEqual(
    reported.map(({ found, left }) => [found.name, left]),
    [
      ['slow', ['last']],
      ['quick', ['last']],
      ['last', []],
    ],
  )
  assert.deepEqual(
    found.map(({ name }) => name),
    ['slow', 'quick', 'last'],
  )
})
