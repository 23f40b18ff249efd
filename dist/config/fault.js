/**
 * What is wrong with a setting, in words that follow its name: what it is and what it must be. Of a secret it
 * tells only whether it is set, and of anything else not what stands before an @: a user and a password.
 */
export function faultOf(value, wanted, { secret }) {
    if (value === undefined)
        return `is not set: ${wanted}`;
    return `is ${secret ? 'set (not shown)' : shown(value)}: ${wanted}`;
}
const shown = (value) => JSON.stringify(typeof value === 'string' ? value.replace(/^.*@/s, '…@') : value);
