import { params } from "./request.js";
/** The parameters of a balance query, unsigned (gateway contract, "Balance query"). */
export const balanceParams = (mchId, reqTime) => params([
    ['mchId', mchId],
    ['reqTime', reqTime],
]);
