import QRCode from 'qrcode';
import { checkoutPage } from "./checkout-page.js";
import { upiLink } from "./payin-fields.js";
import { payinLine } from "./payin-line.js";
/** What the buttons do, by the last part of the path that they post to. */
const ACTIONS = {
    pay: (payins, payin) => payins.pay(payin),
    'pay-untold': (payins, payin) => payins.payUntold(payin),
    fail: (payins, payin) => payins.decline(payin),
    expire: (payins, payin) => payins.expire(payin),
};
/** Nothing from anywhere else, and no page of others may frame the buttons. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'";
export const checkoutPath = (payOrderId) => `/checkout/${payOrderId}`;
/**
 * Where the payer goes: the page of a payin and what its buttons post. A script that accepts
 * application/json is told what became of the payin; a browser goes back to the page.
 */
export function addCheckoutRoutes(server, parts) {
    const { store, payins, records, payments } = parts;
    server.get('/checkout/:payOrderId', async (request, reply) => {
        const payin = records.byPlatformNo(request.params.payOrderId);
        if (!payin)
            return reply.code(404).type('text/plain').send('There is no such order.');
        return reply
            .header('content-security-policy', POLICY)
            .header('cache-control', 'no-store')
            .type('text/html; charset=utf-8')
            .send(await pageOf(payin, parts));
    });
    for (const [action, perform] of Object.entries(ACTIONS)) {
        server.post(`/checkout/:payOrderId/${action}`, async (request, reply) => {
            const payin = records.byPlatformNo(request.params.payOrderId);
            if (!payin)
                return reply.code(404).send({ error: 'no payin has this number' });
            const outcome = perform(payins, payin);
            await store.committed();
            if (!request.headers.accept?.includes('application/json')) {
                return reply.redirect(checkoutPath(request.params.payOrderId), 303);
            }
            return outcome.kind === 'done'
                ? payinLine(outcome.payin, payments)
                : reply.code(409).send({ error: outcome.refusal.retMsg });
        });
    }
}
async function pageOf(payin, { merchants, payments, clock }) {
    const { mchId } = merchants.of(payin);
    const link = upiLink(payin, mchId);
    const qr = await QRCode.toString(link, { type: 'svg', errorCorrectionLevel: 'M', margin: 2 });
    const leftMs = Math.max(payin.expiresAt - clock.now(), 0);
    return checkoutPage({ payin, mchId, link, qr, leftMs, untold: payments.untold(payin.id) });
}
