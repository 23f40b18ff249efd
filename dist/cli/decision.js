import { InvalidArgumentError } from 'commander';
import { ExpectedFailure } from "../platform/expected-failure.js";
import { agreed } from "./agreed.js";
import { paiseAsText } from "./paise-as-text.js";
export const withDecision = (command) => command
    .requiredOption('--by <name>', 'who decides; kept with the decision', said)
    .requiredOption('--reason <text>', 'why; kept with the decision', said)
    .option('--dry-run', 'say what it would do, and do nothing')
    .option('--yes', 'do not ask; needed where there is no terminal')
    .option('--json', 'print what it came to as JSON: amounts in paise, times in milliseconds since 1970');
export function said(text) {
    if (text.trim() === '')
        throw new InvalidArgumentError('It must say something.');
    return text.trim();
}
/**
 * Whether to go on: not on a dry run, which only tells; with `--yes`; or when the person at the terminal says so.
 * Throws an ExpectedFailure where there is nobody to ask.
 */
export async function consented(would, options) {
    if (options.dryRun) {
        tellUndone({ ...would, text: `${would.text}; nothing was done` }, options);
        return false;
    }
    if (options.yes)
        return true;
    if (!process.stdin.isTTY)
        throw new ExpectedFailure('there is no terminal to ask on: give --yes');
    if (await agreed(`${would.text}. Go on?`))
        return true;
    tellUndone({ ...would, text: 'nothing was done' }, options);
    return false;
}
/** Tells what was done. */
export const tellDone = (did, options) => tell({ text: did.text, json: { ...did.json, done: true } }, options);
/** Tells why nothing was done. */
export const tellUndone = (why, options) => tell({ text: why.text, json: { ...why.json, done: false } }, options);
/** The same where it should have been; the exit code is 1. */
export function tellRefused(why, options) {
    process.exitCode = 1;
    tellUndone(why, options);
}
const tell = ({ text, json }, options) => console.log(options.json ? JSON.stringify(json, paiseAsText, 2) : text);
