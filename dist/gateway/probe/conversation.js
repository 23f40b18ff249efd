import { parseBaseUrl } from "../client.js";
import { readBody } from "../hear.js";
import { encode } from "../request.js";
import { createTransport } from "../transport.js";
const TIMEOUT_MS = { connect: 5_000, headers: 10_000, body: 10_000 };
/** One call at a time to the server at `baseUrl`; `pace` is waited for before each. Throws on a wrong URL. */
export function openConversation(settings) {
    const { tls, clock, pace } = settings;
    const { origin, prefix } = parseBaseUrl(settings.baseUrl);
    const transport = createTransport({ origin, connections: 1, sendTimeoutMs: TIMEOUT_MS, tls, clock });
    return {
        async ask({ path, body }, params, sign) {
            await pace();
            const request = encode(new Map(params).set('sign', sign), prefix + path, body);
            const sent = await transport.send(request, () => true);
            if (sent.kind !== 'answered')
                return { kind: 'silence', what: sent.reason };
            if (sent.httpStatus === 404)
                return { kind: 'nowhere', what: 'HTTP 404' };
            if (sent.httpStatus !== 200)
                return { kind: 'other', what: `HTTP ${sent.httpStatus}` };
            const { fields } = readBody(sent);
            const retCode = fields?.get('retCode');
            return fields && retCode
                ? { kind: 'answer', retCode, fields }
                : { kind: 'other', what: 'an answer without a retCode' };
        },
        close: () => transport.close(),
    };
}
