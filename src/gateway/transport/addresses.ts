import dns, { type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import pLimit from 'p-limit'
import { pause } from '../../platform/running/lifecycle.ts'

/** How long a connection waits for an answer if an earlier one is known. */
const PATIENCE_MS = 250

const oneAtATime = pLimit(1)
const asking = new Map<string, Promise<LookupAddress[]>>()
const known = new Map<string, LookupAddress[]>()

/**
 * Finds a gateway for a new connection. Node lets the system look up two names at once (libuv, half of its four threads), for the
 * whole process, and the system needs ten seconds and more for a name whose servers do not answer. So this looks up gateways one
 * at a time, and each name once for all waiting connections; the other thread stays free for PostgreSQL and Kafka. It uses a
 * known address again unless the answer comes at once, or if the name servers cannot answer (RFC 8767), so no gateway waits for
 * another's name.
 */
export const lookUp: LookupFunction = (hostname, { all }, callback) => {
  find(hostname).then(
    (addresses) => {
      const [{ address, family }] = addresses as [LookupAddress]
      if (all) callback(null, addresses)
      else callback(null, address, family)
    },
    (error: NodeJS.ErrnoException) => callback(error, []),
  )
}

async function find(hostname: string): Promise<LookupAddress[]> {
  const asked = askOnce(hostname)
  const before = known.get(hostname)
  if (!before) return asked
  const over = new AbortController()
  try {
    const answer = asked.catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EAI_AGAIN') return before
      throw error
    })
    return await Promise.race([answer, pause(PATIENCE_MS, over.signal).then(() => before)])
  } finally {
    over.abort()
  }
}

/** Callers that want the same name meanwhile share the answer. */
function askOnce(hostname: string): Promise<LookupAddress[]> {
  const answer =
    asking.get(hostname) ?? oneAtATime(() => ask(hostname)).finally(() => asking.delete(hostname))
  asking.set(hostname, answer)
  return answer
}

function ask(hostname: string): Promise<LookupAddress[]> {
  return new Promise((resolve, reject) => {
    dns.lookup(hostname, { all: true }, (error, addresses) => {
      if (error) {
        reject(error)
        return
      }
      known.set(hostname, addresses)
      resolve(addresses)
    })
  })
}
