import { isLoopback } from '../gateway/transport/connections.ts'
import { cutText } from '../text/text.ts'
import { type Check, type Finding, good, wrong } from './examine.ts'

export type CallbackToCheck = {
  merchantId: string
  /** The URL that the gateway gets, without a query string. */
  url: string
  /** Where the gateway's calls come from. */
  gatewayUrl: string
  /** Whether the operator set it with PUBLIC_URL; otherwise it is where payoutd listens. */
  configured: boolean
}

export const callbackChecks = (callbacks: readonly CallbackToCheck[]): Check[] =>
  callbacks.map((callback) => ({
    name: `callback address ${callback.merchantId}`,
    run: async () => checkCallback(callback, await knock(callback.url)),
  }))

export type EndpointAnswer = { status: number; text: string } | { unreachable: string }

/** A callback as the gateway sends it (POST, everything in the query string), with an invalid signature. */
async function knock(url: string): Promise<EndpointAnswer> {
  try {
    const response = await fetch(`${url}?mchOrderNo=doctor&sign=${'0'.repeat(32)}`, {
      method: 'POST',
      redirect: 'manual',
    })
    return { status: response.status, text: cutText(await response.text(), 100) }
  } catch (error) {
    const cause: unknown = error instanceof Error ? error.cause : undefined
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(error)
    return { unreachable: code }
  }
}

/** Expects the texts of the callback endpoint (`src/gateway/callbacks/callback-route.ts`): any other answer is not payoutd. */
export function checkCallback(callback: CallbackToCheck, answer: EndpointAnswer): Finding {
  const { merchantId, url, gatewayUrl, configured } = callback
  if ('unreachable' in answer) {
    return wrong(
      `nothing answers at ${url} (${answer.unreachable})`,
      configured
        ? 'start payoutd serve with the role outcomes, and check that PUBLIC_URL leads to it'
        : 'start payoutd serve with the role outcomes (PUBLIC_URL is not set, so this is where it listens)',
    )
  }
  const { status, text } = answer
  if (status === 404 && text === 'unknown merchant') {
    return wrong(
      `the payoutd at ${url} does not know the merchant ${merchantId}`,
      'restart it with the current settings',
    )
  }
  if (status === 400 && text.startsWith('malformed')) {
    return wrong(
      `payoutd answers at ${url}, but something on the way dropped or changed the query string (${text})`,
      'let the proxy in front of payoutd pass the query string on unchanged: it contains the whole callback',
    )
  }
  if (status !== 401 || text !== 'bad signature') {
    return wrong(
      `something other than payoutd answers at ${url} (HTTP ${status})`,
      'make PUBLIC_URL, and the proxy behind it, lead to the public port of payoutd',
    )
  }
  if (isLoopback(url) && !isLoopback(gatewayUrl)) {
    return wrong(
      `the gateway at ${new URL(gatewayUrl).host} cannot reach ${url}`,
      'set PUBLIC_URL to an address that leads to payoutd from outside',
    )
  }
  return good(`payoutd answers at ${url}, and rejects a wrong signature`)
}
