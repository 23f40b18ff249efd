/** `50100123456789` → `••••6789`. A short number shows nothing. */
export const maskNumber = (number: string): string => (number.length < 8 ? '••••' : `••••${number.slice(-4)}`)

/** Request parameters without bank details, names, telephone numbers or addresses. */
const SHOWN = new Set([
  ...['mchId', 'mchOrderNo', 'payOrderId', 'agentpayOrderId', 'channelPayNo', 'amount', 'currency'],
  ...['accountBankCode', 'notifyUrl', 'returnUrl', 'executeNotify', 'reqTime', 'sign'],
])
const NUMBERS = new Set(['accountNo', 'phoneNumber'])
const IFSC_EXTRA = /^\{\s*"value"\s*:\s*"[A-Za-z]{4}0[A-Za-z0-9]{6}"\s*\}$/

/** A request's parameters, safe to look at: an IFSC is shown, a VPA is not. */
export function masked(params: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const shown: Record<string, string> = Object.create(null)
  for (const [name, value = ''] of Object.entries(params)) shown[name] = maskedValue(name, value)
  return shown
}

function maskedValue(name: string, value: string): string {
  if (value === '' || SHOWN.has(name) || (name === 'extra' && IFSC_EXTRA.test(value))) return value
  return NUMBERS.has(name) ? maskNumber(value) : '••••'
}
