import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TopicSpec } from '../../platform/kafka/admin.ts'
import { checkTopics } from './topics.ts'

const WANTED: TopicSpec = {
  name: 'payout.results',
  partitions: 6,
  replication: 3,
  configs: { 'retention.ms': '7776000000', 'min.insync.replicas': '2' },
}
const found = (fields: Partial<TopicSpec> = {}, configs: Record<string, string> = {}): TopicSpec => ({
  ...WANTED,
  ...fields,
  configs: { ...WANTED.configs, 'cleanup.policy': 'delete', ...configs },
})
const check = (topic: TopicSpec) => checkTopics([WANTED], [topic])

test('a topic with the required settings, or better ones, is good', () => {
  assert.equal(check(found()).state, 'good')
  assert.equal(check(found({ partitions: 12 }, { 'retention.ms': '-1' })).state, 'good')
})

test('a missing topic calls for migrate', () => {
  assert.deepEqual(checkTopics([WANTED], []), {
    state: 'wrong',
    what: 'topics are missing: payout.results',
    todo: 'run payoutd migrate',
  })
})

test('one finding names everything that a topic has less of than required', () => {
  const finding = check(
    found({ partitions: 1, replication: 1 }, { 'retention.ms': '3600000', 'min.insync.replicas': '1' }),
  )
  assert.equal(
    finding.what,
    [
      'payout.results has 1 partitions instead of 6',
      'payout.results has replication 1 instead of 3',
      'payout.results has retention.ms 3600000 instead of 7776000000',
      'payout.results has min.insync.replicas 1 instead of 2',
    ].join('; '),
  )
})

test('a topic that can delete a message because of a newer one with its key, or because of its own size, is named', () => {
  const wanted = { ...WANTED, configs: { 'cleanup.policy': 'delete', 'retention.bytes': '-1' } }
  const kept = { 'cleanup.policy': 'delete', 'retention.bytes': '-1' }
  const checked = (configs: Record<string, string>) =>
    checkTopics([wanted], [{ ...wanted, configs: { ...kept, ...configs } }]).what
  assert.match(checked({}), /^1 topics/)
  for (const policy of ['compact', 'compact,delete'])
    assert.equal(
      checked({ 'cleanup.policy': policy }),
      `payout.results has cleanup.policy ${policy} instead of delete`,
    )
  assert.match(checked({ 'retention.bytes': '1073741824' }), /retention.bytes 1073741824 instead of -1/)
})

test('a topic that needs more in-sync replicas than it has cannot be written, and the finding says so', () => {
  const spec = { ...WANTED, replication: 1, configs: {} }
  const finding = checkTopics([spec], [{ ...spec, configs: { 'min.insync.replicas': '2' } }])
  assert.match(finding.what, /min.insync.replicas 2 but replication 1: nothing can be written/)
})
