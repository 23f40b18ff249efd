import { openDetails } from "../ledger/details.js";
import { maskAccount, maskVpa, scrub } from "../payout/mask.js";
import { formatRupees } from "../payout/money.js";
/** Opens what is kept sealed of a payout, and masks it. */
export function unsealed(key, sealed, keys) {
    try {
        const { accountNo, accountName, ifsc, vpa, phoneNumber, payerEmail, remark, metadata } = openDetails(key, sealed, keys);
        const known = [accountNo, accountName, vpa, phoneNumber, payerEmail].filter((value) => value !== null);
        const { reference = null } = metadata;
        return {
            beneficiary: {
                account: maskAccount(accountNo),
                ifsc,
                vpa: vpa && maskVpa(vpa),
                remark: remark && scrub(remark, known),
            },
            // It is how people call the payout, so that only what names the beneficiary is no part of it.
            reference: known.some((value) => reference?.includes(value)) ? null : reference,
        };
    }
    catch {
        return { beneficiary: null, reference: null };
    }
}
/** `₹50,000.00 to account ••••6789, IFSC HDFC0001234` */
export const amountAndBeneficiary = ({ payout, beneficiary }) => `${formatRupees(payout.amount)} ${to(beneficiary)}`;
function to(beneficiary) {
    if (!beneficiary)
        return 'to a beneficiary that the present ENCRYPTION_KEYS do not open';
    const { account, ifsc, vpa } = beneficiary;
    return vpa === null ? `to account ${account}, IFSC ${ifsc}` : `to VPA ${vpa}, account ${account}`;
}
/** `november, row 3, reference EMP000007`; null: it came in no batch. */
export const placeInBatch = ({ payout: { batchId, rowNumber }, reference }) => batchId &&
    [
        batchId,
        ...(rowNumber === null ? [] : [`row ${rowNumber}`]),
        ...(reference === null ? [] : [`reference ${reference}`]),
    ].join(', ');
/** Both in one line. */
export function askedForText(askedFor) {
    const place = placeInBatch(askedFor);
    return amountAndBeneficiary(askedFor) + (place === null ? '' : `; batch ${place}`);
}
