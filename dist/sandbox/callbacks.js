import { Agent } from 'undici';
import { sign } from "./sign.js";
/** At most this many callbacks at once to one address; the rest wait their turn. */
const CONNECTIONS = 64;
const TIMEOUT_MS = 10_000;
const MAX_ANSWER = 1024;
/** What is kept of an answer, in characters. */
const ANSWER_KEPT = 100;
/** Sends callbacks, whatever they are about. */
export class CallbackSender {
    #clock;
    #exchanges;
    #agent = new Agent({
        connections: CONNECTIONS,
        pipelining: 1,
        keepAliveTimeout: 30_000,
        headersTimeout: TIMEOUT_MS,
        bodyTimeout: TIMEOUT_MS,
        connect: { timeout: TIMEOUT_MS },
        maxResponseSize: MAX_ANSWER,
    });
    #targets = new Map();
    constructor(clock, exchanges) {
        this.#clock = clock;
        this.#exchanges = exchanges;
    }
    /**
     * POSTs `fields` and their signature, everything in the query string and no body (gateway contract,
     * "Events"). Never rejects: whatever goes wrong is a callback that was not acknowledged.
     */
    async send(notifyUrl, fields, seal) {
        const { origin, path } = this.#target(notifyUrl);
        const at = this.#clock.now();
        const begun = this.#clock.monotonic();
        const signature = signatureOf(fields, seal);
        const { text, httpStatus, error } = await new Promise((resolve) => {
            const query = `${path.includes('?') ? '&' : '?'}${queryOf(fields)}${signature && `sign=${signature}`}`;
            this.#agent.dispatch({ origin, path: `${path}${query}`, method: 'POST' }, hear(resolve));
        });
        const accepted = httpStatus !== null && httpStatus >= 200 && httpStatus < 300;
        const delivery = {
            acknowledged: accepted && error === null && text.trim() === 'success',
            at,
            httpStatus,
            answer: text.slice(0, ANSWER_KEPT),
            error,
            durationMs: Math.round(this.#clock.monotonic() - begun),
        };
        this.#exchanges.keep({
            kind: 'told',
            at,
            notifyUrl,
            fields,
            signature,
            merchant: seal.merchant,
            delivery,
        });
        return delivery;
    }
    async stop() {
        await this.#agent.destroy();
    }
    /** Merchants use a few URLs for very many orders. */
    #target(notifyUrl) {
        const known = this.#targets.get(notifyUrl);
        if (known)
            return known;
        const { origin, pathname, search } = new URL(notifyUrl);
        const target = { origin, path: `${pathname}${search}` };
        if (this.#targets.size >= 1000)
            this.#targets.clear();
        this.#targets.set(notifyUrl, target);
        return target;
    }
}
/** Over the values before they are escaped. */
function signatureOf(fields, { merchant, signed }) {
    if (signed === 'not')
        return '';
    const [key] = merchant.keys;
    return sign(fields, signed === 'well' ? key : `not ${key}`, merchant.dialect.sign, 'callbacks');
}
function queryOf(fields) {
    let query = '';
    for (const name in fields)
        query += `${name}=${encodeURIComponent(fields[name])}&`;
    return query;
}
/** By `dispatch` and not `request`: it takes a third less CPU per callback. */
function hear(done) {
    let httpStatus = null;
    let bytes = '';
    const text = () => Buffer.from(bytes, 'latin1').toString();
    return {
        onRequestStart() {
            bytes = '';
        },
        onResponseStart(_controller, statusCode) {
            httpStatus = statusCode;
        },
        onResponseData(_controller, chunk) {
            bytes += chunk.toString('latin1');
        },
        onResponseEnd() {
            done({ httpStatus, text: text(), error: null });
        },
        onResponseError(_controller, error) {
            done({ httpStatus, text: text(), error: reason(error) });
        },
    };
}
const reason = (error) => error.code ?? error.message;
