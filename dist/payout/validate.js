import { cutText } from "../platform/text.js";
import { forgeryIn } from "./forgery.js";
import { EMPTY, maskAccount, maskVpa } from "./mask.js";
import { formatRupees } from "./money.js";
/** IFSC: four letters of the bank, a zero, six of the branch (Reserve Bank of India). */
export const IFSC = /^[A-Z]{4}0[A-Z0-9]{6}$/;
export const VPA = /^[A-Za-z0-9._-]{2,256}@[A-Za-z][A-Za-z0-9]{1,63}$/;
export const ACCOUNT_NO = /^[A-Za-z0-9]{5,35}$/;
const PHONE = /^[6-9][0-9]{9}$/;
const EMAIL = /^[^@\s]{2,}@[^@\s]+\.[^@\s]+$/;
const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}$/;
const MAX_AMOUNT = 10n ** 15n;
const MAX_TEXT = 256;
const MAX_BENEFICIARY_ID = 64;
const MOST_PRIORITY = 1_000;
const EARLIEST = Date.UTC(2000, 0);
const LATEST = Date.UTC(2100, 0);
const hide = () => '••••';
const show = (text) => (text.length > 40 ? `${cutText(text, 40)}…` : text || EMPTY);
/** Whether a payoutId, merchantId or batchId can be a key at all. One that cannot has no result to be keyed by. */
export const isIdentifier = (text) => IDENTIFIER.test(text);
/**
 * Every rule of the gateway contract ("Create payout order", "Limits") and of this product, all faults at
 * once, in the order of the fields. An empty list: the command can be sent.
 */
export function validate(command, limits) {
    return [
        ...amountFaults(command, limits),
        ...must(command.currency === 'INR', 'currency', 'currency', 'must be INR', show(command.currency)),
        ...optional(command.beneficiaryId, (id) => must(id.length >= 1 && id.length <= MAX_BENEFICIARY_ID, 'beneficiaryId', 'length', `must be 1 to ${MAX_BENEFICIARY_ID} characters`, `${id.length} characters`)),
        ...nameFaults(command.accountName),
        ...must(ACCOUNT_NO.test(command.accountNo), 'accountNo', 'account-no', 'must be 5 to 35 letters and digits (a VPA payout needs it too)', maskAccount(command.accountNo)),
        ...must(command.bankCode === 'BANK', 'bankCode', 'bank-code', 'must be exactly BANK', show(command.bankCode)),
        ...destinationFaults(command),
        ...optional(command.phoneNumber, (phone) => must(PHONE.test(phone), 'phoneNumber', 'phone', 'must be 10 digits, the first 6 to 9', maskAccount(phone))),
        ...optional(command.payerEmail, (email) => [
            ...must(EMAIL.test(email) && email.length <= MAX_TEXT, 'payerEmail', 'email', 'must have at least 2 characters, an @ and a dot after it', maskVpa(email)),
            ...forging('payerEmail', email, maskVpa),
        ]),
        ...optional(command.remark, (remark) => [
            ...must([...remark].length <= MAX_TEXT, 'remark', 'length', `must be at most ${MAX_TEXT} characters`, show(remark)),
            ...forging('remark', remark, show),
        ]),
        ...optional(command.batchId, (batchId) => must(isIdentifier(batchId), 'batchId', 'identifier', 'must be 1 to 64 of A–Z a–z 0–9 . _ : / -', show(batchId))),
        ...must(Math.abs(command.priority) <= MOST_PRIORITY, 'priority', 'range', `must be from -${MOST_PRIORITY} to ${MOST_PRIORITY}`, String(command.priority)),
        ...scheduleFaults(command),
    ];
}
function amountFaults({ amount }, { minAmount, maxAmount }) {
    const found = `${amount} paise`;
    if (amount <= 0n)
        return [{ field: 'amount', rule: 'positive', message: 'must be more than zero', found }];
    if (amount > MAX_AMOUNT)
        return [{ field: 'amount', rule: 'size', message: `must be at most ${MAX_AMOUNT} paise`, found }];
    return [
        ...must(amount % 100n === 0n, 'amount', 'whole-rupees', 'must be a multiple of 100 paise: the gateway pays whole rupees', found),
        ...must(minAmount === null || amount >= minAmount, 'amount', 'minimum', `must be at least ${formatRupees(minAmount ?? amount)}`, found),
        ...must(maxAmount === null || amount <= maxAmount, 'amount', 'maximum', `must be at most ${formatRupees(maxAmount ?? amount)}`, found),
    ];
}
function nameFaults(name) {
    return optional(name, (text) => {
        const length = [...text.trim()].length;
        return [
            ...must(length >= 2 && length <= 48, 'accountName', 'length', 'must be 2 to 48 characters', `${length} characters`),
            ...forging('accountName', text, hide),
        ];
    });
}
function destinationFaults({ ifsc, vpa }) {
    if (ifsc !== null && vpa !== null) {
        return [
            { field: 'ifsc', rule: 'one-destination', message: 'give an IFSC or a VPA, not both', found: 'both' },
        ];
    }
    if (ifsc === null && vpa === null) {
        return [{ field: 'ifsc', rule: 'one-destination', message: 'give an IFSC or a VPA', found: 'neither' }];
    }
    return [
        ...optional(ifsc, (code) => must(IFSC.test(code), 'ifsc', 'ifsc', 'must be 4 capital letters, a zero, then 6 capital letters or digits', show(code))),
        ...optional(vpa, (address) => must(VPA.test(address), 'vpa', 'vpa', 'must look like name@bank', maskVpa(address))),
    ];
}
function scheduleFaults({ notBefore, deadline }) {
    const range = (field, at) => must(at >= EARLIEST && at < LATEST, field, 'time', 'must be milliseconds since 1970, of this century', String(at));
    const faults = [
        ...optional(notBefore, (at) => range('notBefore', at)),
        ...optional(deadline, (at) => range('deadline', at)),
    ];
    if (faults.length > 0 || notBefore === null || deadline === null)
        return faults;
    return must(notBefore < deadline, 'deadline', 'after-not-before', 'must be later than notBefore', new Date(deadline).toISOString());
}
function forging(field, text, display) {
    const forgery = forgeryIn(text);
    return forgery ? [{ field, ...forgery, found: display(text) }] : [];
}
function must(holds, field, rule, message, found) {
    return holds ? [] : [{ field, rule, message, found }];
}
function optional(value, check) {
    return value === null ? [] : check(value);
}
