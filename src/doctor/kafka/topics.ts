import type { TopicSpec } from '../../platform/kafka/admin.ts'
import { type Finding, good, wrong } from '../examine.ts'

/** Whether every topic exists and keeps its messages as safely, and as long, as it should. */
export function checkTopics(wanted: readonly TopicSpec[], found: readonly TopicSpec[]): Finding {
  const missing = wanted.filter(({ name }) => !found.some((one) => one.name === name))
  if (missing.length > 0) {
    return wrong(`topics are missing: ${missing.map(({ name }) => name).join(', ')}`, 'run payoutd migrate')
  }
  const faults = wanted.flatMap((spec) => {
    const topic = found.find(({ name }) => name === spec.name)
    return topic ? differences(spec, topic).map((fault) => `${spec.name} has ${fault}`) : []
  })
  if (faults.length > 0) {
    return wrong(
      faults.join('; '),
      'change the topics with kafka-topics and kafka-configs (or the TOPIC_ settings)',
    )
  }
  const least = Math.min(...found.map(({ replication }) => replication))
  return good(`${wanted.length} topics, replication ${least}${least < 3 ? ' (production wants 3)' : ''}`)
}

/** More than required is good: more partitions, more copies, or longer retention. */
function differences(wanted: TopicSpec, found: TopicSpec): string[] {
  const faults: string[] = []
  if (found.partitions < wanted.partitions) {
    faults.push(`${found.partitions} partitions instead of ${wanted.partitions}`)
  }
  if (found.replication < wanted.replication) {
    faults.push(`replication ${found.replication} instead of ${wanted.replication}`)
  }
  for (const [name, value] of Object.entries(wanted.configs)) {
    const present = found.configs[name]
    if (present === undefined || !isEnough(present, value)) {
      faults.push(`${name} ${present ?? 'not set'} instead of ${value}`)
    }
  }
  // KafkaJS asks for acknowledgement by all in-sync replicas: with too few of them no write succeeds.
  const inSync = Number(found.configs['min.insync.replicas'] ?? 1)
  if (inSync > found.replication) {
    faults.push(`min.insync.replicas ${inSync} but replication ${found.replication}: nothing can be written`)
  }
  return faults
}

const isEnough = (present: string, wanted: string): boolean =>
  present === wanted || atLeast(present) >= atLeast(wanted)

/** -1 is Kafka's value for "for ever"; a value in words has no order. */
const atLeast = (value: string): number => (value === '-1' ? Number.POSITIVE_INFINITY : Number(value))
