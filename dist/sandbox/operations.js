import { queryFields, takenFields } from "./order-fields.js";
import { createdFields, payinFields, payOrderId, recoveredFields } from "./payin-fields.js";
import { checkPayin, checkPayinQuery, checkRecovery } from "./payin-rules.js";
import { checkApply, checkPayoutQuery } from "./payout-rules.js";
import { check, REQ_TIME } from "./rules.js";
const PLAIN = { kind: 'plain' };
export const NO_ORDER = {
    retCode: 'ORDER_NOT_FOUND',
    retMsg: 'no order of this merchant has this number',
};
const say = (fields) => ({ fields, manner: PLAIN });
export const refuse = (refusal) => say(refusal);
/** The operations of the contract, by name. */
export function createOperations({ payouts, payins, notices, books, payUrl }) {
    /** Gateway contract, "Create payin order". */
    const createPayin = (merchant, params, now) => {
        const refusal = checkPayin(params);
        if (refusal)
            return refuse(refusal);
        return after(payins.create(merchant, params, now), (payin) => createdFields(payin, merchant.mchId, payUrl(payOrderId(payin))));
    };
    /** Gateway contract, "Query payin order". */
    const queryPayin = (merchant, params) => {
        const refusal = checkPayinQuery(params);
        if (refusal)
            return refuse(refusal);
        const payin = payins.find(merchant, params);
        if (!payin)
            return refuse(NO_ORDER);
        if (params.executeNotify === 'true')
            notices.tellOnceMore(payin);
        return say(payinFields(payin));
    };
    /** Gateway contract, "UTR recovery for a payin order". */
    const recoverPayin = (merchant, params, now) => {
        const refusal = checkRecovery(params);
        if (refusal)
            return refuse(refusal);
        const { payOrderId, channelPayNo = '' } = params;
        const payin = payins.find(merchant, { payOrderId });
        if (!payin)
            return refuse(NO_ORDER);
        return after(payins.recover(merchant, payin, channelPayNo, now), recoveredFields);
    };
    /** Gateway contract, "Create payout order". */
    const apply = (merchant, params, now) => {
        const refusal = checkApply(params);
        if (refusal)
            return refuse(refusal);
        const applied = payouts.apply(merchant, params, now);
        switch (applied.kind) {
            case 'taken':
                return {
                    fields: takenFields(applied.order),
                    manner: applied.manner,
                    ...(applied.manner.kind === 'after-callback' ? { order: applied.order } : {}),
                };
            case 'refused':
                return refuse(applied.refusal);
            case 'turned-away':
                return { fields: {}, manner: applied.manner };
        }
    };
    /** Gateway contract, "Query payout order". */
    const queryPayout = (merchant, params) => {
        const refusal = checkPayoutQuery(params);
        if (refusal)
            return refuse(refusal);
        const order = payouts.find(merchant, params);
        return order ? say(queryFields(order)) : refuse(NO_ORDER);
    };
    /** Gateway contract, "Balance query". */
    const queryBalance = (merchant, params) => {
        const refusal = check(params, [REQ_TIME]);
        if (refusal)
            return refuse(refusal);
        const { available, frozen, pending, unsettled } = books.balances(merchant.id);
        return say({
            retCode: 'SUCCESS',
            retMsg: null,
            busNo: merchant.mchId,
            amount: available + frozen + pending + unsettled,
            frozenAmount: frozen,
            availableAmount: available,
            pendingAmount: pending,
            unsettledAmount: unsettled,
        });
    };
    return { createPayin, queryPayin, recoverPayin, apply, queryPayout, queryBalance };
}
const after = (outcome, fields) => outcome.kind === 'done' ? say(fields(outcome.payin)) : refuse(outcome.refusal);
