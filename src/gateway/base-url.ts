import { withoutLastSlashes } from '../text/text.ts'

/** A base URL's origin, and its path without a trailing slash. Throws an Error that does not repeat the URL. */
export function parseBaseUrl(baseUrl: string): { origin: string; prefix: string } {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new Error(
      'the base URL of the gateway must be http or https, without user, query string or fragment',
    )
  }
  return { origin: url.origin, prefix: withoutLastSlashes(url.pathname) }
}
