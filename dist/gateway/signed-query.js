import { verify } from "./sign.js";
const MAX_LENGTH = 8_192;
const MAX_PARAMETERS = 64;
/**
 * A callback as it came: its query string without the "?". The signature is checked over all parameters as
 * received, percent-decoded once. Some senders write a space as "+" and some mean a plus: both readings are
 * tried before a signature is called wrong, and the one that was signed is the one that counts.
 */
export function readSignedQuery(rawQueryString, rules, key) {
    for (const fields of readingsOf(rawQueryString)) {
        if (typeof fields === 'string')
            return { kind: 'malformed', why: fields };
        if (verify(fields, key, rules, 'callbacks') === 'good')
            return { kind: 'verified', fields };
    }
    return { kind: 'bad-signature' };
}
/** What a query string can mean: "+" as a space, then as a plus; the word says why one has no meaning. */
export function readingsOf(rawQueryString) {
    if (rawQueryString === '')
        return ['empty'];
    if (rawQueryString.length > MAX_LENGTH)
        return ['too-long'];
    const decoders = rawQueryString.includes('+') ? [asForm, asUri] : [asUri];
    return decoders.map((decode) => parse(rawQueryString, decode));
}
/** A Map, so that `__proto__` is a name like any other. */
function parse(text, decode) {
    const fields = new Map();
    const parameters = text.split('&', MAX_PARAMETERS + 1);
    if (parameters.length > MAX_PARAMETERS)
        return 'too-many-parameters';
    for (const parameter of parameters) {
        const equals = parameter.indexOf('=');
        if (equals <= 0)
            return 'unnamed-parameter';
        let name;
        let value;
        try {
            name = decode(parameter.slice(0, equals));
            value = decode(parameter.slice(equals + 1));
        }
        catch {
            return 'bad-encoding';
        }
        if (fields.has(name))
            return 'repeated-parameter';
        fields.set(name, value);
    }
    return fields;
}
/** Throws on a percent sign that begins no byte, and on bytes that are no UTF-8. */
const asUri = (text) => (text.includes('%') ? decodeURIComponent(text) : text);
const asForm = (text) => asUri(text.replaceAll('+', ' '));
