import { crashPoint } from "../platform/crash-points.js";
import { applyParams, applySchema, bankDetails } from "./apply.js";
import { readApplyAnswer } from "./apply-answer.js";
import { balanceParams } from "./balance.js";
import { readBalanceAnswer } from "./balance-answer.js";
import { exchangeOf, redactRequest } from "./exchange.js";
import { forgeriesIn } from "./forgery.js";
import { hear, readBody } from "./hear.js";
import { payerDetails, payinCreateParams, payinCreateSchema } from "./payin-create.js";
import { readPayinCreateAnswer } from "./payin-create-answer.js";
import { payinQueryParams, payinQuerySchema } from "./payin-query.js";
import { readPayinQueryAnswer } from "./payin-query-answer.js";
import { payinRecoveryParams, payinRecoverySchema } from "./payin-recovery.js";
import { readPayinRecoverAnswer } from "./payin-recovery-answer.js";
import { queryParams, querySchema } from "./query.js";
import { readQueryAnswer } from "./query-answer.js";
import { reqTimeIn } from "./req-time.js";
import { encode } from "./request.js";
import { faultsIn } from "./request-rules.js";
import { settingsHash } from "./settings-hash.js";
import { signature } from "./sign.js";
import { createTransport } from "./transport.js";
/**
 * A client with a pool of its own, of at most `connections`. `baseUrl` is http or https, and may have a
 * path. `key` is used as given, and stays in this closure: nothing that can be printed holds it.
 */
export function createGatewayClient(settings, openTransport = createTransport) {
    const { mchId, key, dialect, connections, clock, tls = {} } = settings;
    const { origin, prefix } = parseBaseUrl(settings.baseUrl);
    const transport = openTransport({ origin, connections, sendTimeoutMs: dialect.sendTimeoutMs, tls, clock });
    const formatReqTime = reqTimeIn(dialect.reqTimeZone);
    const reqTime = () => formatReqTime(clock.now());
    async function call(operation, params, options = {}) {
        const { faults = [], signed = 'required', secrets = [], mayStillSend = always } = options;
        const forgeries = forgeriesIn(params);
        if (faults.length + forgeries.length > 0) {
            const reason = forgeries.length > 0 ? 'unsafe-value' : 'invalid-value';
            return {
                heard: { kind: 'not-sent', reason },
                exchange: refusal(params, [...faults, ...forgeries], secrets),
            };
        }
        const complete = new Map(params).set('sign', signature(params, key, dialect.sign, 'requests'));
        const request = encode(complete, prefix + dialect.paths[operation], dialect.body);
        const sent = await transport.send(request, () => {
            const may = mayStillSend();
            if (may)
                crashPoint('before send', operation);
            return may;
        });
        crashPoint('after send', operation);
        const { text, fields } = readBody(sent);
        return {
            heard: hear(sent, fields, key, dialect.sign, signed),
            exchange: exchangeOf(params, sent, text, fields, secrets),
        };
    }
    return {
        async apply(order, lease) {
            const params = applyParams(order, mchId, dialect.vpaAccountNo);
            const secrets = bankDetails(order);
            const faults = faultsIn(applySchema, order);
            const mayStillSend = () => lease.mayStillSend();
            const { heard, exchange } = await call('apply', params, { faults, secrets, mayStillSend });
            return readApplyAnswer(heard, dialect.retCodes.apply, secrets, exchange);
        },
        async query(by) {
            const params = queryParams(by, mchId, reqTime());
            const faults = faultsIn(querySchema, by);
            const { heard, exchange } = await call('payoutQuery', params, { faults });
            return readQueryAnswer(heard, by, dialect.retCodes.query, exchange);
        },
        async balance() {
            const params = balanceParams(mchId, reqTime());
            const { heard, exchange } = await call('balance', params, { signed: 'optional' });
            return readBalanceAnswer(heard, exchange);
        },
        async payinCreate(order, lease) {
            const params = payinCreateParams(order, mchId);
            const secrets = payerDetails(order);
            const faults = faultsIn(payinCreateSchema, order);
            const options = { faults, secrets, mayStillSend: () => lease.mayStillSend() };
            const { heard, exchange } = await call('payinCreate', params, options);
            return readPayinCreateAnswer(heard, dialect.retCodes.payinCreate, secrets, exchange);
        },
        async payinQuery(by, options) {
            const request = { ...by, ...options };
            const params = payinQueryParams(by, mchId, request.executeNotify);
            const faults = faultsIn(payinQuerySchema, request);
            const { heard, exchange } = await call('payinQuery', params, { faults });
            return readPayinQueryAnswer(heard, by, dialect.retCodes.payinQuery, exchange);
        },
        async payinRecover(recovery) {
            const params = payinRecoveryParams(recovery, mchId);
            const faults = faultsIn(payinRecoverySchema, recovery);
            const { heard, exchange } = await call('payinRecovery', params, { faults });
            return readPayinRecoverAnswer(heard, recovery.payOrderId, dialect.retCodes.payinRecovery, exchange);
        },
        settingsHash: settingsHash({ baseUrl: origin + prefix, mchId, dialect, key }),
        close: () => transport.close(),
    };
}
const always = () => true;
/** What is kept of a request that was not sent because of its values. */
const refusal = (params, faults, secrets) => ({
    request: redactRequest(params, secrets),
    note: faults.map(({ field, message }) => `${field} ${message}`).join('; '),
    faults,
});
/** A base URL's origin, and its path without a last slash. Throws an Error that does not repeat the URL. */
export function parseBaseUrl(baseUrl) {
    const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
    if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
        throw new Error('the base URL of the gateway must be http or https, without user, query string or fragment');
    }
    return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '') };
}
