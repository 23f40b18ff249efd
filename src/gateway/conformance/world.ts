import { NotTried } from './demand.ts'

/**
 * What happens around a gateway and no call of the contract brings about: payers pay or are declined. Where
 * nobody can make it happen, the cases that need it are not tried.
 */
export type World = {
  /** Somebody pays this payin. */
  pay(payOrderId: string): Promise<void>
  /** The payer's bank declines it. */
  decline(payOrderId: string): Promise<void>
  /** Somebody pays it and the gateway is not told. Resolves with the payment's UTR. */
  payUntold(payOrderId: string): Promise<string>
  /** An account to which every payout fails. */
  failingAccountNo: string
}

/** Who is paid by the payouts. `values` are for `extra`: an IFSC, a VPA. */
export type Beneficiary = { accountName: string; accountNo: string; values: readonly [string, ...string[]] }

/** Nobody: the sandbox pays no one. */
export const SANDBOX_BENEFICIARY: Beneficiary = {
  accountName: 'Asha Rao',
  accountNo: '50100123456789',
  values: ['HDFC0001234', 'asha.rao@okaxis'],
}

/** The world of the sandbox at `baseUrl`: its checkout page is pressed as a payer would (src/sandbox/README.md). */
export function sandboxWorld(baseUrl: string): World {
  const press = async (payOrderId: string, button: string): Promise<{ untoldUtrs?: string[] }> => {
    const url = `${baseUrl.replace(/\/+$/, '')}/checkout/${encodeURIComponent(payOrderId)}/${button}`
    const response = await fetch(url, { method: 'POST', headers: { accept: 'application/json' } })
    if (!response.ok)
      throw new NotTried(`its checkout page answers HTTP ${response.status}: is it the sandbox?`)
    return (await response.json()) as { untoldUtrs?: string[] }
  }
  return {
    pay: async (payOrderId) => void (await press(payOrderId, 'pay')),
    decline: async (payOrderId) => void (await press(payOrderId, 'fail')),
    payUntold: async (payOrderId) => (await press(payOrderId, 'pay-untold')).untoldUtrs?.at(-1) ?? '',
    failingAccountNo: '9999000001',
  }
}
