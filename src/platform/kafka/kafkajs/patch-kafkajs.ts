import { leaveOutAborted } from './kafkajs-aborted.ts'
import { readAllBatches } from './kafkajs-batches.ts'
import { checkFetches } from './kafkajs-fetch.ts'
import { keepPartitionsWithoutLeader } from './kafkajs-metadata.ts'
import { encodeRecordsAtOnce } from './kafkajs-records.ts'
import { goOnToTheNextBroker } from './kafkajs-seed.ts'
import { stopNegativeTimers } from './kafkajs-timers.ts'

let isPatched = false

/** Changes KafkaJS 2.2.4, once in this process, where it loses, hides or wastes something; each file beside this one says what. */
export function patchKafkajs(): void {
  if (isPatched) return
  readAllBatches()
  encodeRecordsAtOnce()
  stopNegativeTimers()
  keepPartitionsWithoutLeader()
  leaveOutAborted()
  checkFetches()
  goOnToTheNextBroker()
  isPatched = true
}
