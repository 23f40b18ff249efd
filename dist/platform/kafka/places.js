/**
 * Where reading a partition begins, given where the caller's store stands (null: it has nothing of the partition).
 * Offsets of another log say nothing about this one, and a log that ends before the offset was replaced or restored:
 * all that it holds is read, because new records have old offsets there.
 */
export function startAt(stored, { id, low, high }) {
    if (stored === null)
        return { offset: low, remark: 'none' };
    if (stored.logId !== null && id !== null && stored.logId !== id) {
        return { offset: low, remark: 'another-log' };
    }
    if (stored.offset < low)
        return { offset: low, remark: 'records-gone' };
    if (stored.offset > high)
        return { offset: low, remark: 'log-is-older' };
    return { offset: stored.offset, remark: 'none' };
}
const TRIES = 2;
/**
 * Which offset must come next in each partition of the current assignment. KafkaJS moves its own position
 * for reasons of its own (a reset, a batch that was fetched before a seek), and believing it would skip
 * records: a batch that was not fetched from the expected offset is turned away.
 */
export class Places {
    #next = new Map();
    clear() {
        this.#next.clear();
    }
    /** The partitions whose place is known. */
    known() {
        return [...this.#next.keys()];
    }
    /** Undefined while it is not known where the partition begins. */
    next(partition) {
        return this.#next.get(partition)?.offset;
    }
    /** Sets where the partition goes on. Asked for the same offset again, it remembers what it turned away. */
    expect(partition, offset) {
        const before = this.#next.get(partition);
        this.#next.set(partition, { offset, turnedAway: before?.offset === offset ? before.turnedAway : 0 });
    }
    /**
     * Whether a batch that was fetched from offset `fetched` may be handled. One that starts later is taken
     * when seeking did not help twice: compaction left nothing in between.
     */
    admits(partition, fetched) {
        const place = this.#next.get(partition);
        if (!place)
            return false;
        if (fetched === place.offset)
            return true;
        return fetched > place.offset && place.turnedAway++ >= TRIES;
    }
    /** Records that KafkaJS passed over by itself, because they are no messages (aborted, control records). */
    passedOver(partition, first, last) {
        if (this.next(partition) === first)
            this.expect(partition, last + 1n);
    }
}
