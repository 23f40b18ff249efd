import { FAILED, PAID, type Payin, WAITING } from '../payins/payin.ts'
import { payOrderId } from '../payins/payin-fields.ts'
import { rupees } from '../rupees.ts'
import { type Html, html } from './html.ts'

type Checkout = {
  payin: Payin
  mchId: string
  /** The UPI deep link. */
  link: string
  /** The same as a QR code, SVG. */
  qr: string
  leftMs: number
  /** UTRs of payments made here but not reported to the gateway. */
  untold: readonly string[]
}

const RETURN_AFTER_S = 3

const STYLE = `
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5b6478; --card: #fff; --page: #eef1f6; --line: #d8dde8;
  --main: #1b5e3f; --main-ink: #fff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eef1f6; --soft: #a8b1c4; --card: #1b2130; --page: #10141d; --line: #343d52;
    --main: #7fd3a8; --main-ink: #10241a } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
main { max-width: 26rem; margin: 2rem auto; padding: 1.75rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 1rem; text-align: center }
h1 { margin: 0; font-size: 1rem; font-weight: 500; color: var(--soft) }
.amount { margin: .25rem 0; font-size: 2.5rem; font-weight: 700; letter-spacing: -.02em }
.qr { margin: 1rem auto; width: 14rem; padding: .5rem; background: #fff; border: 1px solid var(--line); border-radius: .75rem }
.qr svg { display: block; width: 100%; height: auto }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; margin: 1.25rem 0 0; font-size: .875rem; text-align: left }
dt { color: var(--soft) }
dd { margin: 0; text-align: right; overflow-wrap: anywhere; font-variant-numeric: tabular-nums }
a.button, button { display: block; width: 100%; padding: .7rem; border: 1px solid var(--line); border-radius: .6rem;
  background: transparent; color: inherit; font: inherit; text-decoration: none; cursor: pointer }
a.button { background: var(--main); color: var(--main-ink); font-weight: 600; border-color: transparent }
a:focus-visible, button:focus-visible { outline: 3px solid var(--main); outline-offset: 2px }
fieldset { margin: 1.5rem 0 0; padding: 1rem; border: 1px dashed var(--line); border-radius: .75rem }
legend { padding: 0 .5rem; color: var(--soft); font-size: .875rem }
form + form { margin-top: .5rem }
.end { margin: 1rem 0; font-size: 1.25rem; font-weight: 600 }`

/** Counts down the server's remaining time, and reloads the page at the end. */
const COUNTDOWN = `
const left = document.querySelector('[data-left-ms]')
const until = performance.now() + Number(left.dataset.leftMs)
const show = () => {
  const s = Math.max(0, Math.ceil((until - performance.now()) / 1000))
  left.textContent = Math.floor(s / 60) + ':' + String(s % 60).padStart(2, '0')
  if (s > 0) setTimeout(show, 250)
  else setTimeout(() => location.reload(), 1000)
}
show()`

const BUTTONS = [
  ['pay', 'Pay'],
  ['fail', 'Let the bank decline it'],
  ['expire', 'Let it expire now'],
  ['pay-untold', 'Pay without telling the gateway'],
] as const

/** The page that a payer sees at payUrl. Loads nothing from elsewhere, and has no script but the countdown. */
export function checkoutPage(checkout: Checkout): string {
  const { payin, mchId, untold } = checkout
  const { returnUrl } = payin
  const goesBack = payin.status !== WAITING && returnUrl !== null
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${goesBack ? html`<meta http-equiv="refresh" content="${RETURN_AFTER_S}; url=${returnUrl}">` : undefined}
<title>${amountOf(payin)} to merchant ${mchId}</title>
<style>${{ html: STYLE }}</style>
</head>
<body>
<main>
<h1>Payment to merchant ${mchId}</h1>
<p class="amount">${amountOf(payin)}</p>
${payin.status === WAITING ? waiting(checkout) : ended(payin)}
<dl>
<dt>Order</dt><dd>${payin.mchOrderNo}</dd>
<dt>Platform order</dt><dd>${payOrderId(payin)}</dd>
${payin.utr === null ? undefined : html`<dt>UTR</dt><dd>${payin.utr}</dd>`}
${untold.map((utr) => html`<dt>UTR, not told</dt><dd>${utr}</dd>`)}
</dl>
${goesBack ? html`<p><a href="${returnUrl}">Back to the shop</a></p>` : undefined}
</main>
</body>
</html>
`
  return page.html
}

const waiting = ({ payin, link, qr, leftMs }: Checkout): Html => html`
<div class="qr" role="img" aria-label="QR code for UPI applications">${{ html: qr }}</div>
<a class="button" href="${link}">Open in a UPI application</a>
<p>Time left: <span role="timer" data-left-ms="${leftMs}">${Math.ceil(leftMs / 1000)} s</span></p>
<fieldset>
<legend>This is a sandbox: what shall happen?</legend>
${BUTTONS.map(
  ([action, label]) => html`<form method="post" action="/checkout/${payOrderId(payin)}/${action}">
<button>${label}</button>
</form>
`,
)}</fieldset>
<script>${{ html: COUNTDOWN }}</script>`

const ended = ({ status, errorMessage }: Payin): Html => html`
<p class="end" role="status">${status === PAID ? 'Paid. Thank you!' : 'Not paid'}</p>
${status === FAILED ? html`<p>${errorMessage ?? ''}</p>` : undefined}`

/** `₹12,34,567.50`. The formatter takes the text digit by digit: no amount becomes a float. */
const amountOf = ({ amount }: Payin): string => INDIAN.format(rupees(amount) as `${number}`)
const INDIAN = new Intl.NumberFormat('en-IN', { style: 'currency', currency: 'INR' })
