import { setTimeout as delay } from 'node:timers/promises';
import { NotTried } from "./demand.js";
/** Nobody: the sandbox pays no one. */
export const SANDBOX_BENEFICIARY = {
    accountName: 'Asha Rao',
    accountNo: '50100123456789',
    values: ['HDFC0001234', 'asha.rao@okaxis'],
};
const LONGEST_CALLBACK_MS = 10_000;
/**
 * The world of this merchant at the sandbox at `baseUrl`: its checkout page is pressed as a payer would, and its clock
 * is put forward (src/sandbox/README.md).
 */
export function sandboxWorld(baseUrl, mchId) {
    const ask = async (path, request) => {
        const response = await fetch(`${baseUrl.replace(/\/+$/, '')}/${path}`, request);
        if (!response.ok) {
            throw new NotTried(`${path.split('/')[0]} answers HTTP ${response.status}: is it the sandbox?`);
        }
        return (await response.json());
    };
    const press = (payOrderId, button) => ask(`checkout/${encodeURIComponent(payOrderId)}/${button}`, {
        method: 'POST',
        headers: { accept: 'application/json' },
    });
    const delivered = async (order) => {
        const query = new URLSearchParams({ mchId, order });
        return (await ask(`_sandbox/deliveries?${query}`, {})).length;
    };
    return {
        pay: async (payOrderId) => void (await press(payOrderId, 'pay')),
        decline: async (payOrderId) => void (await press(payOrderId, 'fail')),
        payUntold: async (payOrderId) => (await press(payOrderId, 'pay-untold')).untoldUtrs?.at(-1) ?? '',
        failingAccountNo: '9999000001',
        async passTime(ms, mchOrderNo, told) {
            const patience = AbortSignal.timeout(LONGEST_CALLBACK_MS);
            while ((await delivered(mchOrderNo)) < told)
                await delay(10, undefined, { signal: patience });
            await ask('_sandbox/clock', {
                method: 'POST',
                headers: { 'content-type': 'application/json' },
                body: JSON.stringify({ advanceMs: ms }),
            });
        },
    };
}
