import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { paise } from '../domain/money.ts'
import type { Payin } from '../domain/payin/payin.ts'
import type { Payout } from '../domain/payout/payout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { payinResult } from '../payins/result.ts'
import { type Encode, messageOf, messagesAbout, reversalMessage } from './messages.ts'
import { topicNames } from './topics.ts'

const topics = topicNames('')
const payout = {
  merchantId: 'acme',
  payoutId: 'p-1',
  amount: paise(100n),
  state: 'paid',
  version: 4,
} as Payout
const payin = { merchantId: 'acme', payinId: 'PI1', amount: paise(100n), state: 'paid', version: 2 } as Payin

/** The fields that payoutd writes, by message. */
function written(): Record<string, string[]> {
  const fields: Record<string, string[]> = {}
  const encode: Encode = (type, record) => {
    fields[type] = Object.keys(record).sort()
    return Buffer.from('')
  }
  messagesAbout({ payout, from: 'processing', source: 'QUERY', faults: [], at: 0 }, topics, encode)
  reversalMessage({ payout, anomalyId: 'a', reason: 'returned', paidAt: null, at: 0 }, topics, encode)
  const odd = { kind: 'contradiction', detail: '', source: 'QUERY', exchange: null } as const
  messageOf({ ...payout, ...odd }, 'a', 0, topics, encode)
  const change = { before: payin, after: payin, source: 'QUERY', exchange: null } as const
  payinResult(change, 0, { encode, topics } as Ledger)
  return fields
}

test('payoutd writes every field that the schemas of its messages have', () => {
  for (const [type, fields] of Object.entries(written())) {
    const file = path.join(import.meta.dirname, '../../schemas', `${type}.avsc`)
    const schema = JSON.parse(readFileSync(file, 'utf8')) as { fields: { name: string }[] }
    assert.deepEqual(fields, schema.fields.map(({ name }) => name).sort(), type)
  }
})
