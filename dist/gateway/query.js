import { params } from "./request.js";
import { number30, oneOf } from "./request-rules.js";
export const querySchema = oneOf('mchOrderNo', 'agentpayOrderId', {
    mchOrderNo: number30.optional(),
    agentpayOrderId: number30.optional(),
});
/** The parameters of a payout query, unsigned (gateway contract, "Query payout order"). */
export const queryParams = (by, mchId, reqTime) => params([
    ['mchId', mchId],
    'mchOrderNo' in by ? ['mchOrderNo', by.mchOrderNo] : ['agentpayOrderId', by.agentpayOrderId],
    ['reqTime', reqTime],
]);
