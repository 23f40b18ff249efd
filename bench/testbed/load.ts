import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../../src/config/config.ts'
import { payoutKey } from '../../src/domain/identifiers.ts'
import { schemaSubjects, topicNames } from '../../src/messages/topics.ts'
import { createPublisher } from '../../src/platform/kafka/producer.ts'
import type { Logger } from '../../src/platform/log.ts'
import { openCodec } from '../../src/platform/registry/codec.ts'
import { connectRegistry } from '../../src/platform/registry/registry.ts'
import { systemClock } from '../../src/platform/running/clock.ts'
import { MERCHANT_ID } from './settings.ts'

/** When each command was passed to Kafka, in ms since the epoch, by payoutId. */
export type Sent = ReadonlyMap<string, number>

export interface Load {
  /** Publishes `count` commands as fast as possible. */
  backlog(count: number): Promise<Sent>
  /** Publishes commands evenly, this many a second. */
  steady(load: { perSecond: number; seconds: number }): Promise<Sent>
  close(): Promise<void>
}

/**
 * Publishes commands to the topic of `config`, of these merchants in turn. With `tail`, 5 % of them to accounts that answer 300 ms
 * late.
 */
export async function openLoad(
  config: Config,
  tail: boolean,
  log: Logger,
  merchantIds: readonly string[] = [MERCHANT_ID],
): Promise<Load> {
  const topics = topicNames(config.topicPrefix)
  const codec = await openCodec(connectRegistry(config.registry), schemaSubjects(topics))
  const encode = codec.encoder(topics.commands, 'in.payoutd.PayoutRequested')
  const publisher = createPublisher('test', config.kafka, log)
  let made = 0

  async function publish(count: number, sent: Map<string, number>): Promise<void> {
    const commands = Array.from({ length: count }, () => command(made++, tail, merchantIds))
    const at = systemClock.now()
    for (const { payoutId } of commands) sent.set(payoutId, at)
    await publisher.publish(
      commands.map((each) => ({
        topic: topics.commands,
        key: payoutKey(each),
        value: encode(each),
      })),
    )
  }

  return {
    async backlog(count) {
      const sent = new Map<string, number>()
      while (sent.size < count) await publish(Math.min(1_000, count - sent.size), sent)
      return sent
    },
    async steady({ perSecond, seconds }) {
      const sent = new Map<string, number>()
      const began = systemClock.monotonic()
      while (sent.size < perSecond * seconds) {
        const due = Math.floor(((systemClock.monotonic() - began) / 1_000) * perSecond)
        const count = Math.min(due, perSecond * seconds) - sent.size
        if (count > 0) await publish(count, sent)
        await delay(10)
      }
      return sent
    },
    close: () => publisher.close(),
  }
}

/** The sandbox answers for these accounts 3 tenths of a second late (devkit/sandbox/README.md, "Magic accounts"). */
const LATE_ACCOUNT = '999900001003'

function command(n: number, tail: boolean, merchantIds: readonly string[]) {
  const late = tail && n % 20 === 0
  return {
    payoutId: `pay-${String(n).padStart(7, '0')}`,
    merchantId: merchantIds[n % merchantIds.length] ?? MERCHANT_ID,
    amount: BigInt(1_000 + (n % 5_000)) * 100n,
    accountName: 'Asha Menon',
    accountNo: `${late ? LATE_ACCOUNT : '501001234567'}${String(n).padStart(7, '0')}`,
    ifsc: 'HDFC0001234',
    remark: 'November salary',
  }
}
