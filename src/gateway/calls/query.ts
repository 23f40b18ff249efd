import { type Params, params } from '../wire/request.ts'
import { number30, oneOf } from '../wire/request-rules.ts'

/** Which payout the query names: one of the two numbers, never both, so that the answer must repeat that one. */
export type QueryBy = { mchOrderNo: string } | { agentpayOrderId: string }

export const querySchema = oneOf('mchOrderNo', 'agentpayOrderId', {
  mchOrderNo: number30.optional(),
  agentpayOrderId: number30.optional(),
})

/** The parameters of a payout query, unsigned (gateway contract, "Query payout order"). */
export const queryParams = (by: QueryBy, mchId: string, reqTime: string): Params =>
  params([
    ['mchId', mchId],
    'mchOrderNo' in by ? ['mchOrderNo', by.mchOrderNo] : ['agentpayOrderId', by.agentpayOrderId],
    ['reqTime', reqTime],
  ])
