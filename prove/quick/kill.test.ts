import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { startTrial, type Trial } from '../trial.ts'

/** Slow enough that every kill comes in the middle. */
const PER_SECOND = 100
const PAYOUTS = 300

describe('whatever process is killed, at any time', () => {
  let trial: Trial
  let asked = 0
  before(async () => {
    trial = await startTrial('kill-test', { RATE_PER_SECOND: String(PER_SECOND) })
  })
  after(() => trial.stop())

  const askForMore = async () => {
    await trial.ask(PAYOUTS)
    asked += PAYOUTS
    return asked - PAYOUTS
  }
  const everybodyWasPaidOnce = async () =>
    assert.deepEqual(await trial.verdict(), { discrepancies: [], paid: asked })

  test('payoutd, repeatedly: every beneficiary is paid once, and every end is published', async () => {
    const { payoutd } = trial.installation
    const before = await askForMore()
    for (const taken of [1, 60, 120, 180, 240]) {
      await trial.taken(before + taken)
      await payoutd.kill()
      await payoutd.start()
    }
    await everybodyWasPaidOnce()
  })

  test('Postgres, in the middle: every beneficiary is paid once, and every end is published', async () => {
    const { stack } = trial.installation
    const before = await askForMore()
    await trial.taken(before + 50)
    await stack.kill('postgres')
    await stack.restart('postgres')
    await everybodyWasPaidOnce()
  })

  test('Kafka, for longer than publishing retries: every beneficiary is paid once, and every end is published', async () => {
    const { stack, payoutd } = trial.installation
    const before = await askForMore()
    await trial.taken(before + 50)
    await stack.kill('kafka')
    await eventually('the relay gives up', async () =>
      /"type":"KafkaJS.*"loop":"relay"/.test(await readFile(payoutd.logFile, 'utf8')),
    )
    await stack.restart('kafka')
    await everybodyWasPaidOnce()
  })
})
