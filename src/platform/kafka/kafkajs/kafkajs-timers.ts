// @ts-expect-error: inside KafkaJS, not part of its types
import RequestQueue from 'kafkajs/src/network/requestQueue/index.js'

type Queue = { pending: unknown[]; throttledUntil: number; scheduleCheckPendingRequests(): void }

const queue = RequestQueue.prototype as Queue
const schedule = queue.scheduleCheckPendingRequests

/**
 * After every response KafkaJS 2.2.4 sets a timer to look for waiting requests, even if none waits and no throttle
 * is on. Its delay is then about -1.7e12 ms, for which Node 24 prints a TimeoutNegativeWarning. There is nothing to
 * look for, so this sets no timer.
 */
export function stopNegativeTimers(): void {
  queue.scheduleCheckPendingRequests = function (this: Queue) {
    if (this.pending.length > 0 || this.throttledUntil > Date.now()) schedule.call(this)
  }
}
