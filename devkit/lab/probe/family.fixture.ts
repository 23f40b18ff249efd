import { createHash, createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

/** How one gateway of the family behaves, written independently: nothing here is shared with the client. */
export type FamilyDialect = {
  body: 'form' | 'json' | 'query'
  algorithm: 'md5' | 'hmac-sha256'
  sort: 'whole-ignoring-case' | 'name'
  hexCase: 'upper' | 'lower'
  keySuffix: 'key' | 'appSecret'
  signsEmptyIn: { requests: boolean; answers: boolean }
  signsFailures: boolean
  balancePaths: readonly string[]
  payoutQueryPaths: readonly string[]
  /** Peculiarities of some gateways. */
  quirks?: {
    /** Accepts a signature in either case. */
    anyCase?: true
    /** Reports the balance to anybody. */
    openBalance?: true
    /** Refuses a call with a parameter that the contract does not have. */
    noUnknown?: true
    /** One retCode for every failure. */
    oneCode?: true
    /** Signs answers with lower-case digits, whatever it requires of requests. */
    lowerAnswers?: true
    /** Answers a wrong signature with HTTP 401 and a page. */
    unauthorized?: true
    /** Signs only failures. */
    unsignedOrder?: true
    /** Has a separate code for an unknown payin. */
    payinsApart?: true
    /** Refuses a payin query without executeNotify. */
    needsExecuteNotify?: true
  }
}

export const MCH_ID = '20001'
export const KEY = 'Kb18f32c912daa29d'
/** The one payout that the server has; its agentpayOrderId is AP1. */
export const ORDER = 'P1'

type Fields = Record<string, string | number | boolean | null>

const CONTRACT = new Set([
  ...['mchId', 'reqTime', 'mchOrderNo', 'agentpayOrderId', 'payOrderId', 'executeNotify', 'sign'],
])
const PAYIN_QUERY = '/api/pay/orderquery'

/** The server: `become` changes its behaviour, `asked` records the paths and parameters received. */
export async function startFamilyServer(t: TestContext, first: FamilyDialect) {
  let mode = first
  const asked: { path: string; params: Fields }[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    const [path = '', query = ''] = (request.url ?? '').split('?')
    const params = read(mode.body, request.headers['content-type'] ?? '', body, query)
    asked.push({ path, params })
    const answer = reply(mode, path, params)
    if (answer === 'unauthorized') response.writeHead(401).end('<html>Unauthorized</html>')
    else if (answer === null) response.writeHead(404).end('<html>Not Found</html>')
    else response.end(JSON.stringify(answer))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    become: (next: FamilyDialect) => {
      mode = next
      asked.length = 0
    },
  }
}

/** Reads parameters only where this server looks for them. */
function read(where: FamilyDialect['body'], contentType: string, body: string, query: string): Fields {
  if (where === 'query') return Object.fromEntries(new URLSearchParams(query))
  if (where === 'json') return contentType.startsWith('application/json') ? JSON.parse(body) : {}
  return contentType.startsWith('application/x-www-form-urlencoded')
    ? Object.fromEntries(new URLSearchParams(body))
    : {}
}

function reply(mode: FamilyDialect, path: string, params: Fields): Fields | 'unauthorized' | null {
  const { balancePaths, payoutQueryPaths, quirks = {} } = mode
  const asksBalance = balancePaths.includes(path)
  if (!asksBalance && !payoutQueryPaths.includes(path) && path !== PAYIN_QUERY) return null
  const fail = (code: string, retMsg: string): Fields => {
    const failure = { retCode: quirks.oneCode ? 'FAIL' : code, retMsg }
    return mode.signsFailures && !asksBalance ? signed(failure, mode) : failure
  }
  if (params.mchId !== MCH_ID) return { retCode: '1001', retMsg: 'no such merchant' }
  const open = asksBalance && quirks.openBalance
  if (!open && !isSigned(params, mode)) {
    return quirks.unauthorized ? 'unauthorized' : fail('1002', 'sign error')
  }
  if (quirks.noUnknown && Object.keys(params).some((name) => !CONTRACT.has(name))) {
    return fail('1003', 'unknown parameter')
  }
  if (asksBalance) {
    return {
      ...{ retCode: 'SUCCESS', retMsg: null, busNo: 'B1', amount: 900, frozenAmount: 0 },
      ...{ availableAmount: 900, pendingAmount: 0, unsettledAmount: 0 },
    }
  }
  if (quirks.needsExecuteNotify && !payoutQueryPaths.includes(path) && !('executeNotify' in params)) {
    return fail('1005', 'executeNotify is missing')
  }
  const isOurs = params.mchOrderNo === ORDER || params.agentpayOrderId === 'AP1'
  if (!isOurs || !('reqTime' in params) || !payoutQueryPaths.includes(path)) {
    return fail(quirks.payinsApart && 'executeNotify' in params ? '2006' : '2004', 'no such order')
  }
  const found = {
    ...{ retCode: 'SUCCESS', mchOrderNo: ORDER, agentpayOrderId: 'AP1', amount: 10_000, status: 1 },
    errorMessage: '',
  }
  return quirks.unsignedOrder ? found : signed(found, mode)
}

function signed(fields: Fields, mode: FamilyDialect): Fields {
  const sign = hexOf(fields, mode, mode.signsEmptyIn.answers)
  return { ...fields, sign: mode.quirks?.lowerAnswers ? sign.toLowerCase() : sign }
}

function isSigned(params: Fields, mode: FamilyDialect): boolean {
  const expected = hexOf(params, mode, mode.signsEmptyIn.requests)
  const given = String(params.sign)
  return mode.quirks?.anyCase ? given.toLowerCase() === expected.toLowerCase() : given === expected
}

/** Both a probe and this server send plain ASCII only, so lower case gives Java's order. */
function hexOf(
  fields: Fields,
  { sort, keySuffix, algorithm, hexCase }: FamilyDialect,
  withEmpty: boolean,
): string {
  const parts = Object.entries(fields)
    .filter(([name, value]) => name !== 'sign' && value !== null && (withEmpty || value !== ''))
    .map(([name, value]) => {
      const text = `${name}=${value}&`
      return { text, order: sort === 'name' ? name : text.toLowerCase() }
    })
  parts.sort((a, b) => (a.order < b.order ? -1 : 1))
  const text = `${parts.map((part) => part.text).join('')}${keySuffix}=${KEY}`
  const hash = algorithm === 'md5' ? createHash('md5') : createHmac('sha256', KEY)
  const hex = hash.update(text).digest('hex')
  return hexCase === 'upper' ? hex.toUpperCase() : hex
}
