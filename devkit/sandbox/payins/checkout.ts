import QRCode from 'qrcode'
import type { HttpServer } from '../../../src/platform/http.ts'
import type { Clock } from '../../../src/platform/running/clock.ts'
import { checkoutPage } from '../pages/checkout-page.ts'
import type { Payments } from '../payouts/payments.ts'
import type { Merchants } from '../state/merchants.ts'
import type { Store } from '../state/store.ts'
import type { Payin } from './payin.ts'
import { upiLink } from './payin-fields.ts'
import { payinLine } from './payin-line.ts'
import type { PayinRecords } from './payin-records.ts'
import type { PayinOutcome, Payins } from './payins.ts'

type CheckoutParts = {
  store: Store
  merchants: Merchants
  payins: Payins
  records: PayinRecords
  payments: Payments
  clock: Clock
}

/** What the buttons do, by the last part of the path that they post to. */
const ACTIONS: Record<string, (payins: Payins, payin: Payin) => PayinOutcome> = {
  pay: (payins, payin) => payins.pay(payin),
  'pay-untold': (payins, payin) => payins.payUntold(payin),
  fail: (payins, payin) => payins.decline(payin),
  expire: (payins, payin) => payins.expire(payin),
}

/** Loads nothing from elsewhere, and forbids other sites to frame the buttons. */
const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"

export const checkoutPath = (payOrderId: string): string => `/checkout/${payOrderId}`

/**
 * The payer's routes: the page of a payin and what its buttons post. A script that accepts application/json gets
 * the new state of the payin; a browser goes back to the page.
 */
export function addCheckoutRoutes(server: HttpServer, parts: CheckoutParts): void {
  const { store, payins, records, payments } = parts

  server.get<{ Params: { payOrderId: string } }>('/checkout/:payOrderId', async (request, reply) => {
    const payin = records.byPlatformNo(request.params.payOrderId)
    if (!payin) return reply.code(404).type('text/plain').send('There is no such order.')
    return reply
      .header('content-security-policy', POLICY)
      .header('cache-control', 'no-store')
      .type('text/html; charset=utf-8')
      .send(await pageOf(payin, parts))
  })

  for (const [action, perform] of Object.entries(ACTIONS)) {
    server.post<{ Params: { payOrderId: string } }>(
      `/checkout/:payOrderId/${action}`,
      async (request, reply) => {
        const payin = records.byPlatformNo(request.params.payOrderId)
        if (!payin) return reply.code(404).send({ error: 'no payin has this number' })
        const outcome = perform(payins, payin)
        await store.committed()
        if (!request.headers.accept?.includes('application/json')) {
          return reply.redirect(checkoutPath(request.params.payOrderId), 303)
        }
        return outcome.kind === 'done'
          ? payinLine(outcome.payin, payments)
          : reply.code(409).send({ error: outcome.refusal.retMsg })
      },
    )
  }
}

async function pageOf(payin: Payin, { merchants, payments, clock }: CheckoutParts): Promise<string> {
  const { mchId } = merchants.of(payin)
  const link = upiLink(payin, mchId)
  const qr = await QRCode.toString(link, { type: 'svg', errorCorrectionLevel: 'M', margin: 2 })
  const leftMs = Math.max(payin.expiresAt - clock.now(), 0)
  return checkoutPage({ payin, mchId, link, qr, leftMs, untold: payments.untold(payin.id) })
}
