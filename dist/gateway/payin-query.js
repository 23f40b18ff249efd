import { z } from 'zod';
import { params } from "./request.js";
import { number30, oneOf } from "./request-rules.js";
export const payinQuerySchema = oneOf('payOrderId', 'mchOrderNo', {
    payOrderId: number30.optional(),
    mchOrderNo: number30.optional(),
    executeNotify: z.boolean(),
});
/**
 * The parameters of a payin query, unsigned (gateway contract, "Query payin order"). With `executeNotify` the
 * gateway sends the callback once more.
 */
export const payinQueryParams = (by, mchId, executeNotify) => params([
    ['mchId', mchId],
    'payOrderId' in by ? ['payOrderId', by.payOrderId] : ['mchOrderNo', by.mchOrderNo],
    ['executeNotify', executeNotify],
]);
