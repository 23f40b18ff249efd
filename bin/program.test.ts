import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command } from 'commander'
import { wholeProgram } from './program.ts'

const program = await wholeProgram()

/** What changes nothing that is there, or asks for something as upstream does. Whoever adds a command decides. */
const NOBODY_ACTS = new Set([
  'serve',
  'doctor',
  'ingest',
  'payout list',
  'payout show',
  'payout review',
  'anomaly list',
  'anomaly show',
  'payin review',
  'payin show',
  'dlq list',
  'dlq show',
  'outbox list',
  'merchants',
  'acts list',
  'gateway balance',
  'gateway payout query',
  'gateway payin query',
  'gateway sign',
  'gateway verify',
  'gateway probe',
])
/** Only with --settle, which asks for them. */
const SOMETIMES = 'reconcile'

function leaves(command: Command, path: readonly string[] = []): { name: string; command: Command }[] {
  return command.commands.flatMap((each) => {
    const name = [...path, each.name()]
    return each.commands.length > 0 ? leaves(each, name) : [{ name: name.join(' '), command: each }]
  })
}

test('whoever acts by a command says who and why, or the command does nothing', () => {
  for (const { name, command } of leaves(program)) {
    const demanded = command.options.filter(({ mandatory }) => mandatory).map(({ long }) => long)
    const acts = demanded.includes('--by') && demanded.includes('--reason')
    assert.equal(acts, !NOBODY_ACTS.has(name) && name !== SOMETIMES, name)
  }
})
