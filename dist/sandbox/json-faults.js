/** Reads parsed JSON as `schema` has it. */
export function readGiven(schema, json) {
    const read = schema.safeParse(json, { error: wants });
    if (read.success)
        return { ok: true, value: read.data };
    return { ok: false, faults: read.error.issues.flatMap(told).join('; ') };
}
const told = (issue) => issue.code === 'unrecognized_keys'
    ? issue.keys.map((key) => `${nameOf([...issue.path, key])}: is not known here`)
    : [`${nameOf(issue.path)}: ${issue.message}`];
const nameOf = (path) => path.join('.') || 'the whole';
const KINDS = {
    string: 'a text',
    number: 'a number',
    int: 'a whole number',
    boolean: 'true or false',
    array: 'a list',
    object: 'a JSON object',
};
/** What a schema wants that says nothing of its own about it. */
function wants(issue) {
    switch (issue.code) {
        case 'invalid_type':
            return issue.input === undefined ? 'is required' : `must be ${KINDS[issue.expected] ?? issue.expected}`;
        case 'invalid_value':
            return oneOf(issue.values);
        case 'invalid_union':
            return Array.isArray(issue.options) ? oneOf(issue.options) : undefined;
        case 'too_small':
            return `must be ${issue.inclusive ? 'at least' : 'more than'} ${size(issue.minimum, issue.origin)}`;
        case 'too_big':
            return `must be ${issue.inclusive ? 'at most' : 'less than'} ${size(issue.maximum, issue.origin)}`;
        default:
            return undefined;
    }
}
const oneOf = (words) => `must be one of ${words.join(', ')}`;
const size = (limit, origin) => origin === 'string' || origin === 'array' ? `${limit} in length` : `${limit}`;
