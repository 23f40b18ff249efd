import { createHash } from 'node:crypto'
import type { GatewayOrder } from '../../devkit/oracle/gateway-books.ts'
import { callbackPath } from '../../src/stages/outcomes/callback-endpoint.ts'
import type { World } from './world.ts'

/** The true callback about an order that has ended (gateway contract, "Payout callback"), unsigned. */
export const aboutOrder = (order: GatewayOrder): Record<string, string> => ({
  mchOrderNo: order.mchOrderNo,
  agentpayOrderId: order.agentpayOrderId,
  amount: String(order.amount),
  fee: String(order.fee),
  channelPayNo: order.utr ?? '',
  status: String(order.status),
  ...(order.status === 3 && { errorMessage: 'The beneficiary bank returned the transfer' }),
})

/**
 * Posts a callback as a gateway does; the prover has its own signing code. `key`: by default that of the order's
 * merchant; `endpoint`: the merchant whose endpoint gets it, by default the order's. Resolves with the HTTP status.
 */
export async function postCallback(
  { settings, gateway }: World,
  fields: Readonly<Record<string, string>>,
  given: { key?: string; endpoint?: string } = {},
): Promise<number> {
  const owner = gateway.ownerOf(fields.mchOrderNo)
  const { key = owner.key, endpoint = owner.merchantId } = given
  const text = Object.entries(fields)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${value}&`)
    .sort()
    .join('')
  const sign = createHash('md5').update(`${text}key=${key}`).digest('hex').toUpperCase()
  const query = new URLSearchParams({ ...fields, sign })
  const url = `http://127.0.0.1:${settings.PUBLIC_PORT}${callbackPath('payout', endpoint)}?${query}`
  return (await fetch(url, { method: 'POST' })).status
}

/** Posts a callback, which payoutd must accept. */
export async function callBack(world: World, fields: Readonly<Record<string, string>>): Promise<void> {
  const status = await postCallback(world, fields)
  if (status !== 200) throw new Error(`the callback was answered ${status}`)
}
