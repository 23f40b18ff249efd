import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { isEnd, mayMove, STATES, type State } from './states.ts'

const design = readFileSync(new URL('../../../docs/design.md', import.meta.url), 'utf8')
const [, table = ''] = design.split('| state | meaning | leaves to |\n|---|---|---|\n')

/** The states that `text` names, except those in brackets. */
const named = (text: string): State[] =>
  STATES.filter((state) => new RegExp(`\\b${state}\\b`).test(text.replace(/\(.*?\)/g, '')))

const DESIGNED = new Map(
  (table.split('\n\n')[0] as string).split('\n').flatMap((line) => {
    const [, states = '', , leavesTo = ''] = line.split('|')
    return named(states).map((state) => [state, named(leavesTo)] as const)
  }),
)

test('a payout that the gateway cannot have moves as docs/design.md says', () => {
  assert.deepEqual([...DESIGNED.keys()].sort(), [...STATES].sort())
  for (const [from, leavesTo] of DESIGNED)
    for (const to of STATES) assert.equal(mayMove(from, to, 0), leavesTo.includes(to), `${from} to ${to}`)
})

test('once an attempt exists, evidence can also end a waiting payout, and nothing is cancelled or rejected', () => {
  for (const [from, leavesTo] of DESIGNED) {
    const waits = from === 'held' || from === 'queued'
    const also: State[] = waits ? ['processing', 'paid', 'failed'] : []
    const allowed: State[] = [...leavesTo, ...also].filter((to) => to !== 'cancelled' && to !== 'rejected')
    for (const to of STATES) assert.equal(mayMove(from, to, 1), allowed.includes(to), `${from} to ${to}`)
  }
})

test('nothing leaves paid, failed, rejected and cancelled', () => {
  assert.deepEqual(STATES.filter(isEnd), ['paid', 'failed', 'rejected', 'cancelled'])
})
