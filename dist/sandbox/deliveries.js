/** Every callback that was ever tried, by the order it was about. Every write belongs inside `store.write`. */
export class Deliveries {
    #insert;
    #about;
    constructor(store) {
        this.#insert = store.prepare('insert into deliveries values (?, ?, ?, ?, ?, ?, ?)');
        this.#about = store.prepare('select * from deliveries where order_id = ? order by attempt');
    }
    /** `attempt` counts from 1. */
    add(orderId, attempt, { at, httpStatus, answer, error, durationMs }) {
        this.#insert.run(orderId, attempt, at, httpStatus, answer, error, durationMs);
    }
    /** In the order of the attempts; `at` in milliseconds since the epoch. */
    about(orderId) {
        return this.#about.all(orderId).map((row) => ({
            attempt: Number(row.attempt),
            at: Number(row.at),
            httpStatus: row.http_status === null ? null : Number(row.http_status),
            answer: String(row.answer),
            error: row.error === null ? null : String(row.error),
            durationMs: Number(row.duration_ms),
        }));
    }
}
