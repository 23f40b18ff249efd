import { seal, unseal } from "../platform/seal.js";
const context = ({ merchantId, payoutId }) => `payout:${merchantId}:${payoutId}`;
export function sealDetails(command, keys) {
    const { accountName, accountNo, ifsc, vpa, phoneNumber, payerEmail, remark, metadata } = command;
    const details = {
        accountName,
        accountNo,
        ifsc,
        vpa,
        phoneNumber,
        payerEmail,
        remark,
        metadata,
    };
    return seal(Buffer.from(JSON.stringify(details)), context(command), keys);
}
export function openDetails(key, sealed, keys) {
    return JSON.parse(unseal(sealed, context(key), keys).toString());
}
/** The same details, sealed with the current key. Throws DoesNotOpen as `unseal` does. */
export const resealDetails = (key, sealed, keys) => seal(unseal(sealed, context(key), keys), context(key), keys);
