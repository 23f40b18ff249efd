import type { Instant } from '../../../src/platform/running/clock.ts'
import { orderNumber } from '../payouts/order-number.ts'
import { rupees } from '../rupees.ts'
import type { Merchant } from '../state/merchants.ts'
import type { Deliveries } from '../wire/deliveries.ts'
import type { Exchange, ReceivedRequest, RecordedCall } from '../wire/exchanges.ts'
import type { Signable } from '../wire/sign.ts'
import { ownSteps, requestSteps, type Steps } from '../wire/signature-steps.ts'
import { type Html, html } from './html.ts'

/** A payout or a payin. Amount in paise. */
export type OrderOnPage = {
  mchId: string
  mchOrderNo: string
  platformNo: string
  amount: bigint
  status: number
  utr: string | null
  /** Masked; only a payout has one. */
  account?: string
  deliveries: ReturnType<Deliveries['about']>
}

type Overview = {
  now: Instant
  merchants: readonly { merchant: Merchant; balances: Record<string, bigint> }[]
  payouts: readonly OrderOnPage[]
  payins: readonly OrderOnPage[]
  exchanges: Iterable<[number: number, exchange: Exchange]>
  /** The exchange to explain; its `exchange` is undefined if it is no longer kept. */
  chosen: { number: number; exchange: Exchange | undefined } | undefined
  refreshes: boolean
}

const REFRESH_S = 5

const STYLE = `
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5b6478; --card: #fff; --page: #eef1f6; --line: #d8dde8; --main: #1b5e3f }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eef1f6; --soft: #a8b1c4; --card: #1b2130; --page: #10141d; --line: #343d52; --main: #7fd3a8 } }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 80rem; margin: 0 auto; padding: 1.5rem }
section { margin: 1.5rem 0; padding: 1rem 1.25rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .75rem; overflow-x: auto }
h1 { margin: 0; font-size: 1.5rem }
h2 { margin: 0 0 .5rem; font-size: 1.1rem }
h3 { margin: 1.25rem 0 .5rem; font-size: 1rem }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top }
th { color: var(--soft); font-weight: 500 }
code { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere }
a { color: var(--main) }
a:focus-visible { outline: 3px solid var(--main); outline-offset: 2px }`

/** The sandbox at a glance. Loads nothing from elsewhere and has no script. */
export function overviewPage(overview: Overview): string {
  const { now, merchants, payouts, payins, exchanges, chosen, refreshes } = overview
  const reloads = refreshes && !chosen
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${reloads ? html`<meta http-equiv="refresh" content="${REFRESH_S}">` : undefined}
<title>Sandbox of the payment gateway</title>
<style>${{ html: STYLE }}</style>
</head>
<body>
<main>
<h1>Sandbox of the payment gateway</h1>
<p>${time(now)}. ${
    reloads
      ? html`Shown anew every ${REFRESH_S} seconds. <a href="/?refresh=no">Stop that</a>`
      : html`This page stands still. <a href="/">Refresh it by itself</a>`
  }</p>
${chosen ? explained(chosen) : undefined}
${table(
  'Merchants',
  ['Merchant', 'Available', 'Frozen', 'Pending', 'Unsettled', 'Parameters', 'Signature'],
  merchants.map(({ merchant, balances }) => merchantRow(merchant, balances)),
)}
${table(
  'Latest payouts',
  [...ORDER_COLUMNS, 'Account'],
  payouts.map((order) => orderRow(order, html`<td>${order.account}</td>`)),
)}
${table(
  'Latest payins',
  ORDER_COLUMNS,
  payins.map((order) => orderRow(order)),
)}
${table('Callbacks about them', DELIVERY_COLUMNS, [...payouts, ...payins].flatMap(deliveryRows))}
${table('Last exchanges', ['', 'When', 'What', 'Merchant', 'Order', 'Outcome'], [...exchanges].map(exchangeRow))}
</main>
</body>
</html>
`
  return page.html
}

const table = (title: string, columns: readonly string[], rows: readonly Html[]): Html => html`<section>
<h2>${title}</h2>
${
  rows.length === 0
    ? html`<p>None yet.</p>`
    : html`<table><thead><tr>${columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead><tbody>
${rows}</tbody></table>`
}
</section>`

const row = (
  ...cells: (string | number)[]
): Html => html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>
`

function merchantRow({ mchId, dialect }: Merchant, balances: Record<string, bigint>): Html {
  const { available = 0n, frozen = 0n, pending = 0n, unsettled = 0n } = balances
  const { algorithm, sort, hexCase, keySuffix } = dialect.sign
  const money = [available, frozen, pending, unsettled].map((paise) => `₹${rupees(paise)}`)
  return row(mchId, ...money, dialect.body, `${algorithm}, sorted ${sort}, ${hexCase} case, ${keySuffix}=`)
}

const ORDER_COLUMNS = ['Merchant', 'Order', 'Platform order', 'Amount', 'Status', 'UTR']
const STATUS = ['0 waiting', '1 processing', '2 success', '3 failed']

const orderRow = ({ mchId, mchOrderNo, platformNo, amount, status, utr }: OrderOnPage, more?: Html): Html =>
  html`<tr>${[mchId, mchOrderNo, platformNo, `₹${rupees(amount)}`, STATUS[status] ?? '', utr ?? ''].map(
    (cell) => html`<td>${cell}</td>`,
  )}${more}</tr>
`

const DELIVERY_COLUMNS = ['Order', 'Attempt', 'When', 'HTTP status', 'Answer', 'Error', 'Took']

const deliveryRows = ({ mchOrderNo, deliveries }: OrderOnPage): Html[] =>
  deliveries.map(({ attempt, at, httpStatus, answer, error, durationMs }) =>
    row(mchOrderNo, attempt, time(at), httpStatus ?? '', answer, error ?? '', `${durationMs} ms`),
  )

const exchangeRow = ([number, exchange]: [number, Exchange]): Html => {
  const [what, mchId, order] =
    exchange.kind === 'asked'
      ? [exchange.operation, exchange.form.params.mchId, orderNumber(exchange.form.params)]
      : ['callback', exchange.merchant.mchId, orderNumber(exchange.fields)]
  const cells = [time(exchange.at), what, mchId ?? '', order, outcome(exchange)]
  return html`<tr><td><a href="/?exchange=${number}">${number}</a></td>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>
`
}

function outcome(exchange: Exchange): string {
  if (exchange.kind === 'told') {
    const { acknowledged, httpStatus, error } = exchange.delivery
    return acknowledged ? 'acknowledged' : (error ?? `HTTP ${httpStatus}, not acknowledged`)
  }
  const { reply } = exchange
  if (typeof reply !== 'object') return reply
  return String(fieldsOf(reply.body).retCode ?? `HTTP ${reply.status}`)
}

const explained = ({ number, exchange }: NonNullable<Overview['chosen']>): Html => html`<section>
<h2>Exchange ${number}</h2>
${exchange === undefined ? html`<p>It is not kept any more.</p>` : exchange.kind === 'asked' ? asked(exchange) : told(exchange)}
</section>`

const asked = ({ operation, at, form, merchant, reply }: ReceivedRequest): Html => html`
<p>${operation} at ${time(at)}, parameters by ${form.from}. Bank and personal details are masked here, not where they are signed.</p>
<h3>The request</h3>
${merchant ? steps(requestSteps(form.params, merchant)) : html`<p>No merchant has this mchId, so there is no key to check with.</p>`}
<h3>The answer</h3>
${
  typeof reply !== 'object'
    ? html`<p>None: ${reply}.</p>`
    : html`<p>HTTP ${reply.status}: <code>${reply.body}</code></p>
${merchant ? steps(ownSteps(fieldsOf(reply.body), merchant, 'answers')) : undefined}`
}`

const told = ({ at, notifyUrl, fields, signature, merchant, delivery }: RecordedCall): Html => html`
<p>A callback at ${time(at)} to <code>${notifyUrl}</code>, ${delivery.acknowledged ? 'acknowledged' : 'not acknowledged'}
(HTTP ${delivery.httpStatus ?? 'none'}: <code>${delivery.answer}</code> ${delivery.error ?? ''}) after ${delivery.durationMs} ms.</p>
${steps(ownSteps({ ...fields, sign: signature }, merchant, 'callbacks'))}`

const steps = ({ fields, text, hash, given, verdict }: Steps): Html => html`<ol>
<li>Every parameter as it travels:
<table><thead><tr><th scope="col">Name</th><th scope="col">Value</th><th scope="col">Not signed because</th></tr></thead><tbody>
${fields.map(
  ({
    name,
    value,
    leftOut,
  }) => html`<tr><td>${name}</td><td><code>${value}</code></td><td>${leftOut}</td></tr>
`,
)}</tbody></table></li>
<li>The others sorted and joined, the key at the end: <code>${text}</code></li>
<li>${hash}</li>
<li>Given: <code>${given === '' ? 'nothing' : given}</code>. ${verdict}</li>
</ol>`

/** The fields of an answer; one that is not JSON has none. */
function fieldsOf(body: string): Signable {
  return body.startsWith('{') ? JSON.parse(body) : {}
}

const time = (at: Instant): string => `${new Date(at).toISOString().slice(0, 23).replace('T', ' ')} UTC`
