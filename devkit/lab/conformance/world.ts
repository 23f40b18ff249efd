import { setTimeout as delay } from 'node:timers/promises'
import { withoutLastSlashes } from '../../../src/text/text.ts'
import { NotTried } from './demand.ts'

/**
 * Events around a gateway that no call of the contract causes: payers pay or are declined. If nobody can cause
 * them, the cases that need them are not tried.
 */
export type ConformanceWorld = {
  /** Somebody pays this payin. */
  pay(payOrderId: string): Promise<void>
  /** The payer's bank declines it. */
  decline(payOrderId: string): Promise<void>
  /** Somebody pays it, but nobody reports it to the gateway. Resolves with the payment's UTR. */
  payUntold(payOrderId: string): Promise<string>
  /** An account to which every payout fails. */
  failingAccountNo: string
  /**
   * Lets `ms` pass for the gateway, once it knows the results of the order's first `told` callbacks. Missing if the
   * gateway's clock cannot be moved forward.
   */
  passTime?(ms: number, mchOrderNo: string, told: number): Promise<void>
}

/** The beneficiary of the payouts. `values` are for `extra`: an IFSC, a VPA. */
export type Beneficiary = { accountName: string; accountNo: string; values: readonly [string, ...string[]] }

/** An invented person: the sandbox pays no one. */
export const SANDBOX_BENEFICIARY: Beneficiary = {
  accountName: 'Asha Rao',
  accountNo: '50100123456789',
  values: ['HDFC0001234', 'asha.rao@okaxis'],
}

const LONGEST_CALLBACK_MS = 10_000

/**
 * The world of this merchant at the sandbox at `baseUrl`: it presses the buttons of the checkout page as a payer
 * would, and moves the clock forward (devkit/sandbox/README.md).
 */
export function sandboxWorld(baseUrl: string, mchId: string): ConformanceWorld {
  const ask = async <T>(path: string, request: RequestInit): Promise<T> => {
    const response = await fetch(`${withoutLastSlashes(baseUrl)}/${path}`, request)
    if (!response.ok) {
      throw new NotTried(`${path.split('/')[0]} answers HTTP ${response.status}: is it the sandbox?`)
    }
    return (await response.json()) as T
  }
  const press = (payOrderId: string, button: string) =>
    ask<{ untoldUtrs?: string[] }>(`checkout/${encodeURIComponent(payOrderId)}/${button}`, {
      method: 'POST',
      headers: { accept: 'application/json' },
    })
  const delivered = async (order: string) => {
    const query = new URLSearchParams({ mchId, order })
    return (await ask<unknown[]>(`_sandbox/deliveries?${query}`, {})).length
  }
  return {
    pay: async (payOrderId) => void (await press(payOrderId, 'pay')),
    decline: async (payOrderId) => void (await press(payOrderId, 'fail')),
    payUntold: async (payOrderId) => (await press(payOrderId, 'pay-untold')).untoldUtrs?.at(-1) ?? '',
    failingAccountNo: '9999000001',
    async passTime(ms, mchOrderNo, told) {
      const patience = AbortSignal.timeout(LONGEST_CALLBACK_MS)
      while ((await delivered(mchOrderNo)) < told) await delay(10, undefined, { signal: patience })
      await ask('_sandbox/clock', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ advanceMs: ms }),
      })
    },
  }
}
