import { InvalidArgumentError } from 'commander';
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/;
const DATE = /^\d{4}-\d\d-\d\d$/;
/**
 * A moment as a person types it. Throws an InvalidArgumentError for one without its time zone, or of a day that does
 * not exist.
 */
export function momentOf(text) {
    return parsed(text, MOMENT.test(text), 'a moment with its time zone: 2026-12-01T18:00+05:30');
}
/** The same, or a date, which is its midnight in UTC. */
export function momentOrDateOf(text) {
    const isOne = MOMENT.test(text) || DATE.test(text);
    return parsed(text, isOne, 'a date, or a moment with its time zone: 2026-11-01T00:00+05:30');
}
function parsed(text, isOne, wanted) {
    if (isOne && !isDay(text.slice(0, 10)))
        throw new InvalidArgumentError('There is no such day.');
    const at = isOne ? Date.parse(text) : Number.NaN;
    if (Number.isNaN(at))
        throw new InvalidArgumentError(`It must be ${wanted}.`);
    return at;
}
/** Date.parse takes 30 February for 2 March. */
function isDay(date) {
    const midnight = Date.parse(date);
    return !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(date);
}
