import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sentPayout } from '../payout/payout.fixture.ts'
import type { Payout } from '../payout/payout.ts'
import { leftToPerson } from './left-to-person.ts'
import { nothingPublished, type PublishedTransition } from './published-story.ts'

type ToldAs = Partial<PublishedTransition> & Pick<PublishedTransition, 'version' | 'toState'>

const REVIEW: ToldAs = { version: 2, fromState: 'queued', toState: 'review', reason: 'tampered' }
const RESENT: ToldAs = {
  ...{ version: 3, fromState: 'review', toState: 'queued', reason: 'resent', evidence: 'OPERATOR' },
}
const HOLD: ToldAs = { version: 1, toState: 'held', reason: 'duplicate' }

/** Why a payout is a person's again, of whose stories, in the order of time, the ledger lacks all. */
function reasonOf(payout: Partial<Payout>, ...told: ToldAs[]) {
  const lacked = told.map((each, at) => ({
    ...{ fromState: null, reason: null, evidence: 'COMMAND', at },
    ...each,
  })) as PublishedTransition[]
  // The order in which the topics are read says nothing.
  const published = { ...nothingPublished(), transitions: lacked.toReversed() }
  return leftToPerson(sentPayout(payout), published, lacked)?.reason ?? null
}

describe('a published review that the ledger lacks is a person’s again', () => {
  for (const state of ['held', 'queued', 'submitting', 'unknown'] as const)
    test(`while the payout is ${state}`, () => assert.equal(reasonOf({ state }, REVIEW), 'tampered'))

  test('whatever another story went on to under that version, even to a resend', () => {
    const other: ToldAs[] = [
      { version: 2, fromState: 'unknown', toState: 'review', reason: 'expired' },
      RESENT,
    ]
    assert.equal(reasonOf({ state: 'queued' }, REVIEW, ...other), 'tampered')
    assert.equal(reasonOf({ state: 'queued' }, ...other, REVIEW), 'tampered')
    const toldAgain: ToldAs = { ...RESENT, fromState: 'queued', reason: null }
    assert.equal(reasonOf({ state: 'queued' }, REVIEW, toldAgain), 'tampered')
  })

  test('of an old payout, whose history no longer shows what it lacks', () => {
    const transitions = [{ ...REVIEW, at: 0 } as PublishedTransition]
    const old = sentPayout({ state: 'queued', version: REVIEW.version })
    assert.equal(leftToPerson(old, { ...nothingPublished(), transitions }, [])?.reason, 'tampered')
  })

  test('unless a person sent the payout again', () =>
    assert.equal(reasonOf({ state: 'queued' }, REVIEW, RESENT), null))

  test('unless a person did so once a recovery had asked them again', () => {
    const fork: ToldAs = { version: 2, fromState: 'queued', toState: 'submitting' }
    const again: ToldAs[] = [
      { ...REVIEW, version: 5 },
      { ...RESENT, version: 6 },
    ]
    assert.equal(reasonOf({ state: 'queued' }, REVIEW, fork, ...again), null)
    assert.equal(reasonOf({ state: 'queued' }, REVIEW, fork, ...again.slice(0, 1)), 'tampered')
  })

  test('but not where only a person sends it anyway, or its command is refused', () => {
    for (const state of ['processing', 'review'] as const) assert.equal(reasonOf({ state }, REVIEW), null)
    assert.equal(reasonOf({ state: 'held', reason: 'faults' }, REVIEW), null)
  })
})

describe('a published hold that the ledger lacks is a person’s again', () => {
  test('although in another story the time of the payout came', () => {
    const due: ToldAs = { version: 2, fromState: 'held', toState: 'queued', evidence: 'CLOCK' }
    assert.equal(reasonOf({ state: 'queued' }, HOLD, due), 'duplicate')
  })

  test('unless a person released it, or it waits for a release already', () => {
    const released: ToldAs = { version: 2, fromState: 'held', toState: 'queued', evidence: 'OPERATOR' }
    assert.equal(reasonOf({ state: 'queued' }, HOLD, released), null)
    assert.equal(reasonOf({ state: 'held', reason: 'beneficiary-changed' }, HOLD), null)
    assert.equal(reasonOf({ state: 'held', reason: 'beneficiary-changed' }, HOLD, REVIEW), 'tampered')
  })
})
