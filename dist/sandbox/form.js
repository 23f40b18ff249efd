import { parse } from 'node:querystring';
/** A request in which no parameters can be read. */
export class UnreadableForm extends Error {
    statusCode = 400;
}
/**
 * Decodes application/x-www-form-urlencoded, from a body or a query string. Throws UnreadableForm where a
 * percent sign or a byte means nothing.
 */
export function parseForm(text, from) {
    if (!isDecodable(text))
        throw new UnreadableForm('the parameters are not percent-encoded UTF-8');
    const params = parse(text, '&', '=', { maxKeys: 0 });
    const repeated = [];
    for (const name in params) {
        if (!Array.isArray(params[name]))
            continue;
        repeated.push(name);
        delete params[name];
    }
    return { params: params, repeated, from };
}
const NOT_FLAT = 'the body is not one JSON object of texts, numbers, booleans and nulls';
/** A parameter such as `"amount":010000`. */
const LEADING_ZERO = /"(\w{1,32})"\s*:\s*-?0\d/;
/** A text in JSON, and the colon after it if it is a name. */
const TEXT = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?/g;
/**
 * Decodes one JSON object of texts, numbers, booleans and nulls. A number stays as it was written (`1e2`,
 * `10.0`), because that was signed; a null counts as not given. Throws UnreadableForm for anything else.
 */
export function parseJson(body) {
    let given;
    try {
        given = JSON.parse(body, asTravelled);
    }
    catch {
        const [, name] = LEADING_ZERO.exec(body) ?? [];
        throw new UnreadableForm(name ? `${name}: a number in JSON begins with no 0` : NOT_FLAT);
    }
    // Bytes that are no UTF-8 have come as U+FFFD.
    const isObject = typeof given === 'object' && given !== null && !Array.isArray(given);
    if (!isObject || body.includes('\uFFFD'))
        throw new UnreadableForm(NOT_FLAT);
    const params = Object.create(null);
    for (const [name, value] of Object.entries(given)) {
        if (typeof value === 'string')
            params[name] = value;
        else if (value !== null)
            throw new UnreadableForm(NOT_FLAT);
    }
    const repeated = namesTwiceIn(body);
    for (const name of repeated)
        delete params[name];
    return { params, repeated, from: 'json' };
}
const asTravelled = (_name, value, { source }) => typeof value === 'number' || typeof value === 'boolean' ? source : value;
/** Of a flat object whose text is known to be JSON: there a text before a colon is a name. */
function namesTwiceIn(body) {
    const seen = new Set();
    const twice = new Set();
    for (const [, text = '', colon] of body.matchAll(TEXT)) {
        if (colon === undefined)
            continue;
        const name = JSON.parse(text);
        if (seen.has(name))
            twice.add(name);
        seen.add(name);
    }
    return [...twice];
}
/** Bytes that are no UTF-8 have come as U+FFFD. `parse` alone would take both for what they look like. */
function isDecodable(text) {
    try {
        decodeURIComponent(text);
        return !text.includes('\uFFFD');
    }
    catch {
        return false;
    }
}
