import { z } from 'zod'
import { type Params, params } from '../wire/request.ts'
import { number30, oneOf } from '../wire/request-rules.ts'

/** Which payin the query names: one of the two numbers, never both, so that the answer must repeat that one. */
export type PayinQueryBy = { payOrderId: string } | { mchOrderNo: string }

export const payinQuerySchema = oneOf('payOrderId', 'mchOrderNo', {
  payOrderId: number30.optional(),
  mchOrderNo: number30.optional(),
  executeNotify: z.boolean(),
})

/**
 * The parameters of a payin query, unsigned (gateway contract, "Query payin order"). With `executeNotify` the gateway sends the
 * callback again.
 */
export const payinQueryParams = (by: PayinQueryBy, mchId: string, executeNotify: boolean): Params =>
  params([
    ['mchId', mchId],
    'payOrderId' in by ? ['payOrderId', by.payOrderId] : ['mchOrderNo', by.mchOrderNo],
    ['executeNotify', executeNotify],
  ])
