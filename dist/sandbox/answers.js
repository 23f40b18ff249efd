import { sign } from "./sign.js";
/**
 * The JSON text of an answer with its `sign` last, which a failure lacks in some dialects. An amount must be a
 * safe integer.
 */
export function signedAnswer(fields, key, rules) {
    if (fields.retCode !== 'SUCCESS' && !rules.failures)
        return unsignedAnswer(fields);
    return JSON.stringify({ ...fields, sign: sign(fields, key, rules, 'answers') }, integers);
}
/** The JSON text of an answer that carries no `sign`: every answer to a balance query. */
export const unsignedAnswer = (fields) => JSON.stringify(fields, integers);
/** The answer to somebody whose key nobody knows: `sign` is there, and empty. */
export const answerToStranger = (refusal) => JSON.stringify({ ...refusal, sign: '' });
function integers(_name, value) {
    return typeof value === 'bigint' ? Number(value) : value;
}
