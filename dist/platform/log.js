import { pino, stdTimeFunctions } from 'pino';
import { visibleJson } from "./text.js";
/**
 * Fields that must never be printed. Callers log identifiers and masked values only; this list is the
 * net below, not the rule.
 */
const SECRET_FIELDS = [
    'accountNo',
    'ifsc',
    'vpa',
    'extra',
    'key',
    'sign',
    'phoneNumber',
    'payerEmail',
    'accountName',
];
/** One JSON object a line of visible characters on stdout (or to `destination`: 2 is stderr, so that stdout stays for results). */
export function createLogger(options) {
    return pino({
        name: options.name,
        level: options.level,
        timestamp: stdTimeFunctions.isoTime,
        hooks: { streamWrite: (line) => `${visibleJson(line.trimEnd())}\n` },
        redact: {
            paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
            censor: '***',
        },
    }, pino.destination(options.destination ?? 1));
}
export const silentLogger = pino({ level: 'silent' });
