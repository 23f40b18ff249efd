import { scrub } from "../payout/mask.js";
import { paise } from "../payout/money.js";
import { cutText } from "../platform/text.js";
const WHOLE = /^(0|[1-9][0-9]{0,17})$/;
const IDENTIFIER = /^[A-Za-z0-9._:/-]{1,64}$/;
/** What careless senders write for "none". */
const NOTHING = new Set(['null', 'undefined', 'true', 'false', '0']);
const MAX_MESSAGE = 300;
const EARLIEST = Date.UTC(2000, 0);
const LATEST = Date.UTC(2100, 0);
/** A whole number of paise, to the letter; anything else (`1e4`, `10000.0`, `-1`, nothing) is null. */
export const readAmount = (value) => value && WHOLE.test(value) ? paise(BigInt(value)) : null;
/** A small whole number that is no amount; null where it is none. */
export const readInteger = (value) => value && /^(0|-?[1-9][0-9]{0,8})$/.test(value) ? Number(value) : null;
/** Milliseconds since 1970; null for what is none of this century, such as seconds or a written date. */
export function readInstant(value) {
    if (!value || !/^[0-9]{12,13}$/.test(value))
        return null;
    const instant = Number(value);
    return instant >= EARLIEST && instant < LATEST ? instant : null;
}
/** An order number or a UTR; null where there is none, or something that cannot be one. */
export const readIdentifier = (value) => value && IDENTIFIER.test(value) && !NOTHING.has(value) ? value : null;
/** Text for people, without anything that could be a bank detail, cut to 300 characters. */
export const readMessage = (value, secrets) => value ? cutText(scrub(cutText(value, 4 * MAX_MESSAGE), secrets), MAX_MESSAGE) : null;
/** Gateway contract, "Payout order status". */
export function readStatus(value) {
    switch (value) {
        case '0':
            return 'pending';
        case '1':
            return 'processing';
        case '2':
            return 'success';
        case '3':
            return 'failed';
        default:
            return 'unlisted';
    }
}
