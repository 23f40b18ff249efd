import { z } from 'zod'
import { type Params, params } from '../wire/request.ts'
import { number30 } from '../wire/request-rules.ts'

/** A payment that the gateway lost: its order, and the reference of the payer's bank. */
export type PayinRecovery = { payOrderId: string; utr: string }

export const payinRecoverySchema = z.object({ payOrderId: number30, utr: number30 })

/** The parameters of a recovery, unsigned (gateway contract, "UTR recovery for a payin order"). */
export const payinRecoveryParams = ({ payOrderId, utr }: PayinRecovery, mchId: string): Params =>
  params([
    ['mchId', mchId],
    ['payOrderId', payOrderId],
    ['channelPayNo', utr],
  ])
