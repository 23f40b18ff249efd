import { SHARDS } from '../messages/messages.ts'
import { kafkaPing } from '../platform/kafka/ping.ts'
import { Publishers } from '../platform/kafka/producer.ts'
import { Relay } from '../stages/relay/relay.ts'
import type { Shared } from './shared.ts'

export function startRelay({
  config,
  safeguards,
  ledger,
  onCommit,
  metrics,
  lifecycle,
  clock,
  processId,
  log,
}: Shared): void {
  const publishers = new Publishers(() => safeguards.createPublisher('relay', config.kafka, log))
  lifecycle.own('publishers', () => publishers.close())
  const kafka = kafkaPing(config.kafka, log)
  lifecycle.own('the relay’s ping', () => kafka.close())
  const relay = new Relay({
    db: ledger.db,
    ping: () => kafka.ping(),
    publisherOf: (topic) => publishers.of(topic),
    owner: processId,
    shards: SHARDS,
    published: metrics.counter('published_total', 'Messages published', ['topic']),
    refused: metrics.counter('refused_total', 'Messages that Kafka refused', ['topic', 'reason']),
    heartbeats: lifecycle.heartbeats,
    log,
  })
  lifecycle.own('relay shards', () => relay.leave())
  const wake = lifecycle.loop('relay', () => relay.turn(clock.monotonic()))
  onCommit(wake)
}
