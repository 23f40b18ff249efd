import { connectionsTo } from "./connections.js";
import { AnswerTooSlow, codeOf, LeaseCheckFailed, LeaseEnded, whyNoAnswer, whyNotSent, } from "./send-failure.js";
/** Sends over at most `connections` to `origin`, one request at a time on each (`connections.ts`). */
export function createTransport(options) {
    const { origin, sendTimeoutMs, clock } = options;
    const connections = connectionsTo(origin, options.connections, sendTimeoutMs, options.tls);
    let closed;
    return {
        send: ({ path, contentType, body }, mayStillSend) => new Promise((resolve) => {
            const conversation = new Conversation(mayStillSend, sendTimeoutMs, clock, resolve);
            connections.dispatch({
                origin,
                path,
                method: 'POST',
                headers: ['content-type', contentType, 'accept', 'application/json'],
                body,
            }, conversation);
        }),
        close: () => (closed ??= connections.close()),
    };
}
/**
 * Follows one request through undici. What it stands on (undici 8, `lib/dispatcher/client-h1.js`, writeH1):
 * onRequestStart is called in the same tick as, and just before, the request is written to an open socket;
 * if it throws, nothing is written. So whatever fails before it has returned proves that no byte left, and
 * whatever fails after it proves nothing. `transport.test.ts` holds undici to that with real servers.
 */
class Conversation {
    #mayStillSend;
    #timeoutMs;
    #clock;
    #resolve;
    #chunks = [];
    #since;
    #handedOver = false;
    #answerAt = 0;
    #httpStatus = null;
    constructor(mayStillSend, timeoutMs, clock, resolve) {
        this.#mayStillSend = mayStillSend;
        this.#timeoutMs = timeoutMs;
        this.#clock = clock;
        this.#resolve = resolve;
        this.#since = clock.monotonic();
    }
    onRequestStart() {
        if (!this.#leaseHolds())
            throw new LeaseEnded();
        this.#since = this.#clock.monotonic();
        this.#handedOver = true;
    }
    /** Also called for each 1xx, which starts undici's timeout for the headers anew. */
    onResponseStart(_controller, httpStatus) {
        this.#answerAt = this.#clock.monotonic();
        const interim = httpStatus < 200;
        if (interim && this.#answerAt - this.#since > this.#timeoutMs.headers)
            throw new AnswerTooSlow();
        if (!interim)
            this.#httpStatus = httpStatus;
    }
    /** undici's timeout for the body counts from chunk to chunk, and a drip never pauses for long. */
    onResponseData(_controller, chunk) {
        if (this.#clock.monotonic() - this.#answerAt > this.#timeoutMs.body)
            throw new AnswerTooSlow();
        this.#chunks.push(chunk);
    }
    onResponseEnd() {
        const body = Buffer.concat(this.#chunks);
        this.#resolve({ kind: 'answered', httpStatus: this.#httpStatus ?? 0, body, tookMs: this.#tookMs() });
    }
    onResponseError(_controller, error) {
        const said = { code: codeOf(error), tookMs: this.#tookMs() };
        this.#resolve(this.#handedOver
            ? { kind: 'lost', reason: whyNoAnswer(error), httpStatus: this.#httpStatus, ...said }
            : { kind: 'not-sent', reason: whyNotSent(error), ...said });
    }
    #leaseHolds() {
        try {
            return this.#mayStillSend();
        }
        catch (cause) {
            throw new LeaseCheckFailed('mayStillSend threw', { cause });
        }
    }
    #tookMs() {
        return Math.round(this.#clock.monotonic() - this.#since);
    }
}
