import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { accepted, registered, testEnvironment } from '../../../test/ledger.ts'
import { openLedger } from '../../app/ledger.ts'
import { readConfig } from '../../config/config.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { topicNames } from '../../messages/topics.ts'
import { kafka, makeTopic } from '../../platform/kafka/kafka.fixture.ts'
import { createPublisher } from '../../platform/kafka/producer.ts'
import { readTopic } from '../../platform/kafka/read-topic.ts'
import { silentLogger } from '../../platform/log.ts'
import { Lifecycle } from '../../platform/running/lifecycle.ts'
import { deadLetter } from '../../stages/intake/dead-letter.ts'
import { contentOf } from '../../views/dlq-text.ts'
import { payoutd } from '../cli.fixture.ts'

const WHO = ['--by', 'asha', '--reason', 'merchant added']

test('a dead letter shows an id, a hash and an IFSC as they are, and masks anything else in their place', () => {
  const shown = (fields: object) => {
    const content = contentOf(null, { kind: 'decoded', name: 'in.payoutd.PayoutRequested', value: fields })
    return content.kind === 'command' ? content.fields : assert.fail()
  }
  const right = { payoutId: 'F1', batchId: 'salary-2026-11', ifsc: 'HDFC0001234', fileHash: 'a1'.repeat(32) }
  assert.deepEqual(shown(right), right)
  const account = '50100123456789'
  for (const name of [
    'payoutId',
    'merchantId',
    'batchId',
    'fileHash',
    'ifsc',
    'bankCode',
    'currency',
    'beneficiaryId',
  ]) {
    const { [name]: text } = shown({ [name]: `a/c ${account}` })
    assert.equal(text, 'a/c ••••6789', name)
  }
})

test('dead letters are listed, shown masked, tried out, and replayed once', async (t) => {
  const prefix = `l${randomBytes(4).toString('hex')}.`
  const topics = topicNames(prefix)
  const env = testEnvironment(await freshDatabase(t), { TOPIC_PREFIX: prefix })
  const config = readConfig(env)
  const lifecycle = new Lifecycle(silentLogger)
  await registered(config)
  const { ledger, codec } = await openLedger(config, lifecycle)
  await accepted(ledger, config, [command('known')])
  for (const topic of [topics.commands, topics.deadLetters]) await makeTopic(topic)
  const requested = codec.encoder<object>(topics.commands, 'in.payoutd.PayoutRequested')
  const values = [
    Buffer.from('{"accountNo":"50100999988887","accountName" : "Asha Rao","vpa":"asha.rao@okaxis","रमेश":1}'),
    requested(command('new')),
    requested(command('known')),
    Buffer.alloc(300 * 1024, '5010012345'),
  ]
  const publisher = createPublisher('test', kafka(), silentLogger)
  await publisher.publish(
    values.map((value, i) => {
      const record = { offset: BigInt(i), key: Buffer.from('k'), value, headers: {}, timestamp: 0 }
      const origin = { topic: topics.commands, partition: 0, logId: null }
      const reason = i % 3 === 0 ? 'not-avro' : 'unknown-merchant'
      const letter = deadLetter(record, origin, reason, topics, config.sealing)
      return { ...letter, headers: letter.headers ?? {} }
    }),
  )
  await publisher.close()
  await lifecycle.stop()
  const commands = async () => {
    const found: unknown[] = []
    const onRecord = ({ value }: { value: Buffer | null }) => void found.push(value)
    await readTopic({ connection: kafka(), topic: topics.commands, onRecord, log: silentLogger })
    return found
  }

  const list = await payoutd(['dlq', 'list', '--limit', '2'], env)
  assert.equal(list.code, 0, list.stderr)
  assert.match(list.stdout, new RegExp(`0:0 .* not-avro +${topics.commands}:0:0 +never\n +0:1 `))
  assert.match(list.stderr, /there are 4; --limit 2 shows only the first/)

  const undecodable = await payoutd(['dlq', 'show', '0:0'], env)
  assert.match(undecodable.stdout, /that payoutd cannot decode: not-avro/)
  assert.match(undecodable.stdout, /\{"accountNo":"••••","accountName" : "•••• ••••","vpa":"[^a-z]+","••••/)
  const shown = await payoutd(['dlq', 'show', '0:1', '--json'], env)
  const { content } = JSON.parse(shown.stdout)
  assert.equal(content.name, 'in.payoutd.PayoutRequested')
  const { payoutId, amount, accountNo, accountName } = content.fields
  assert.deepEqual([payoutId, amount, accountNo, accountName], ['new', '₹50,000.00', '••••6789', '••••'])
  for (const { stdout } of [list, undecodable, shown]) {
    for (const secret of ['50100123456789', '8887', 'asha.rao', 'Asha', 'Rao', 'रमेश'])
      assert.ok(!stdout.includes(secret), secret)
  }

  const large = await payoutd(['dlq', 'show', '0:3'], env)
  assert.match(large.stdout, /it does not contain its record .*\n +bytes +307200\n +sha256 +[0-9a-f]{64}\n$/)
  const tried = await payoutd(['dlq', 'replay', '--all', '--dry-run', ...WHO], env)
  assert.equal(tried.code, 1)
  const refused = new RegExp(
    `^0:3 cannot be replayed: it does not contain its record \\(it is larger than 262144 bytes\\)\\. The record is at ${topics.commands}:0:3 `,
    'm',
  )
  assert.match(tried.stderr, refused)
  assert.match(
    tried.stdout,
    /^with the settings of this command:\n0:0 +would be dead-lettered again: not-avro/,
  )
  assert.match(tried.stdout, /0:1 +payout new would be accepted and become queued/)
  assert.match(tried.stdout, /0:2 +nothing would happen: payoutd already has payout known/)
  assert.deepEqual(await commands(), [])

  const one = await payoutd(['dlq', 'replay', '0:1', '--yes', ...WHO], env)
  assert.equal(one.code, 0)
  assert.match(
    one.stdout,
    /^published again: 0:1\npayoutd now handles them like new commands; those that fail again /,
  )
  const rest = await payoutd(['dlq', 'replay', '--all', '--yes', '--json', ...WHO], env)
  assert.deepEqual(JSON.parse(rest.stdout), { positions: ['0:0', '0:2'], done: true })
  assert.match(rest.stderr, refused)
  assert.match(rest.stderr, /0:1 was replayed .* by asha: merchant added; use --again to replay it again/)
  assert.deepEqual(await commands(), [values[1], values[0], values[2]])
})
