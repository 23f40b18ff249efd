import { toString as draw } from 'qrcode'
import type { Payin } from '../domain/payin/payin.ts'

/**
 * What the payer's app must read to pay: the gateway's QR text, its deep link, or its checkout page. Null if there is nothing to
 * pay: the payin is not open, or its checkout parameters were lost.
 */
export function qrText({ state, checkout }: Payin): string | null {
  if (state !== 'open' || !checkout) return null
  return checkout.qrString || checkout.url || checkout.payUrl
}

export const qrSvg = (text: string): Promise<string> => draw(text, { type: 'svg' })

/** For a terminal, in half-height blocks. */
export const qrTerminal = (text: string): Promise<string> => draw(text, { type: 'terminal', small: true })
