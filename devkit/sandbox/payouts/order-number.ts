/**
 * The number by which a request or a callback names its order, the merchant's before the platform's; empty: it
 * names none.
 */
export const orderNumber = ({
  mchOrderNo,
  payOrderId,
  agentpayOrderId,
}: Readonly<Record<string, string | undefined>>): string => mchOrderNo || payOrderId || agentpayOrderId || ''
