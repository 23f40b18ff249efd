import { z } from 'zod';
import { params } from "./request.js";
import { number30 } from "./request-rules.js";
export const payinRecoverySchema = z.object({ payOrderId: number30, utr: number30 });
/** The parameters of a recovery, unsigned (gateway contract, "UTR recovery for a payin order"). */
export const payinRecoveryParams = ({ payOrderId, utr }, mchId) => params([
    ['mchId', mchId],
    ['payOrderId', payOrderId],
    ['channelPayNo', utr],
]);
