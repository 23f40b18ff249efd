import { paise } from "../payout/money.js";
import { isIdentifier, validate } from "../payout/validate.js";
/**
 * What a decoded record asks for. Only what cannot even be answered is dead: bytes nobody can decode, a
 * merchant that is not ours, an id that cannot be a key. Every other fault is a rejection with its reasons.
 */
export function understand(decoded, terms) {
    if (decoded.kind === 'undecodable')
        return { kind: 'dead', reason: decoded.reason };
    const record = decoded.value;
    const merchant = terms.get(record.merchantId);
    if (!merchant)
        return { kind: 'dead', reason: 'unknown-merchant' };
    switch (decoded.name) {
        case 'in.payoutd.PayoutRequested':
            return payout(record, merchant);
        case 'in.payoutd.PayoutCancelRequested': {
            const { merchantId, payoutId, reason, requestedBy } = record;
            return { kind: 'cancel', merchantId, payoutId, why: `${requestedBy}: ${reason}` };
        }
        case 'in.payoutd.PayoutBatchDeclared': {
            const declaration = record;
            if (!isIdentifier(declaration.batchId))
                return { kind: 'dead', reason: 'bad-batch-id' };
            return { kind: 'batch', declaration: { ...declaration, amount: paise(declaration.amount) } };
        }
        default:
            return { kind: 'dead', reason: `not-a-command: ${decoded.name}` };
    }
}
function payout(record, terms) {
    if (!isIdentifier(record.payoutId))
        return { kind: 'dead', reason: 'bad-payout-id' };
    const command = { ...record, amount: paise(record.amount) };
    return { kind: 'payout', command, terms, faults: validate(command, terms.limits) };
}
