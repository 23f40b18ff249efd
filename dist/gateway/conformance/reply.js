import { cutText } from "../../platform/text.js";
import { readMessage } from "../values.js";
export const succeeded = ({ fields }) => fields.get('retCode') === 'SUCCESS';
/** What a refusal says, without anything that could be a bank detail. */
export const codeOf = ({ httpStatus, fields }) => cutText(readMessage(fields.get('retCode'), []) ?? `HTTP ${httpStatus}`, 40);
/** Every field that is not what it must be, in words. */
export const misshapen = ({ types }, shape) => Object.entries(shape).flatMap(([name, allowed]) => {
    const type = types.get(name) ?? 'absent';
    return allowed.includes(type) ? [] : [`${name} is ${type}`];
});
/** What a field that may hold nothing holds: its type, `empty` or `absent`. */
export const heldIn = ({ fields, types }, name) => fields.get(name) === '' ? 'empty' : (types.get(name) ?? 'absent');
/** The types of the fields in the text of a JSON object. */
export function typesIn(text, fields) {
    const parsed = Object.entries(JSON.parse(text));
    return new Map(parsed.map(([name, value]) => [name, typeOf(value, fields.get(name))]));
}
/** `travelled`: a number as it was written, because 1e2 is no integer in the contract's sense. */
function typeOf(value, travelled) {
    if (value === null)
        return 'null';
    if (Array.isArray(value))
        return 'list';
    switch (typeof value) {
        case 'string':
            return 'text';
        case 'number':
            return /^-?\d+$/.test(travelled ?? '') ? 'integer' : 'number';
        case 'boolean':
            return 'boolean';
        default:
            return 'object';
    }
}
