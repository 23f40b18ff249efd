import { type Params, params } from '../wire/request.ts'

/** The parameters of a balance query, unsigned (gateway contract, "Balance query"). */
export const balanceParams = (mchId: string, reqTime: string): Params =>
  params([
    ['mchId', mchId],
    ['reqTime', reqTime],
  ])
