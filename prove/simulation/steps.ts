import fc from 'fast-check'
import type { Merchant } from '../../src/config/merchants.ts'
import type { PayoutCommand } from '../../src/domain/commands/command.ts'
import { orderNumber, payoutKey } from '../../src/domain/identifiers.ts'
import { paise } from '../../src/domain/money.ts'
import { accountOf } from '../../src/gateway/dialect/account.ts'
import { promisesOf } from '../../src/gateway/dialect/dialect.ts'
import { cancelPayouts } from '../../src/operators/cancel-payouts.ts'
import { releasePayouts } from '../../src/operators/release-payouts.ts'
import { resolvePayout } from '../../src/operators/resolve-payout.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { reportOf, VERDICTS } from './gateway.ts'
import type { Process } from './process.ts'
import type { SimulatedWorld, Trap } from './world.ts'

/** One element of a story: `on` selects the object, `how` the act on it. */
export type Element = { kind: Kind; on: number; how: number }

const AMOUNTS = [20_000n, 50_000n, 70_000n, 30_000n].map((amount) => paise(amount))
const WAITS_MS = [20, 100, 500, 1_000, 3_000, 8_000, 16_000, 45_000]
const NAMES = ['Asha Rao', 'Ravi Kumar', 'Meera Shah', 'John Mathew']

const pick = <T>(from: readonly T[], on: number): T | undefined => from[on % from.length]
const running = (world: SimulatedWorld): Process[] => world.processes.filter(({ frozen }) => !frozen)

/** The kinds of events, with their relative frequency. */
const KINDS = {
  'goes on': [30, goOn],
  waits: [6, wait],
  'lets time pass': [7, letTimePass],
  'asks for a payout': [9, ask],
  'asks again': [1, askAgain],
  'asks for the same payment': [1, askForTheSame],
  'cancels by command': [1, cancelByCommand],
  'cancels first, and asks then': [1, cancelFirst],
  'is tampered with': [1, tamper],
  'is answered otherwise': [6, answerOtherwise],
  'loses a call': [6, loseCall],
  'ends an order': [6, endOrder],
  'gives money back': [2, giveBack],
  'calls back': [6, callBack],
  'calls back falsely': [2, callBackFalsely],
  'calls back wrongly': [2, callBackWrongly],
  'finds nothing for a while': [2, goBlind],
  'hangs, or goes on': [2, hang],
  'mixes answers up, or does not': [2, mixUp],
  'is funded': [1, fund],
  'meets trouble': [8, meetFault],
  'is frozen or goes on': [3, freezeOrThaw],
  'is away or back': [2, goAwayOrComeBack],
  'refuses messages, or does not': [1, refuseMessages],
  'has its clock set': [1, setClock],
  'shares a partition': [1, sharePartition],
  'is decided by a person': [4, decide],
  'is cancelled by a person': [4, cancel],
  'is released by a person': [2, release],
  'is paused or resumed': [2, pauseOrResume],
  'changes its account': [2, changeAccount],
  'is copied': [3, (world) => world.copy()],
  'fails over': [3, failOver],
  'fails over unseen': [2, failOverUnseen],
  'is recovered by a person': [2, (world) => world.recover()],
} as const satisfies Record<
  string,
  readonly [number, (world: SimulatedWorld, on: number, how: number) => Promise<void> | void]
>
export type Kind = keyof typeof KINDS

/** The kinds that a story can leave out to be about something else. */
export const OPTIONAL: readonly Kind[] = [
  ...([
    'asks for the same payment',
    'is tampered with',
    'is answered otherwise',
    'loses a call',
    'gives money back',
  ] as const),
  ...([
    'calls back falsely',
    'finds nothing for a while',
    'calls back wrongly',
    'hangs, or goes on',
    'mixes answers up, or does not',
    'meets trouble',
  ] as const),
  ...([
    'is frozen or goes on',
    'is away or back',
    'refuses messages, or does not',
    'has its clock set',
  ] as const),
  ...([
    'shares a partition',
    'is paused or resumed',
    'changes its account',
    'fails over',
    'fails over unseen',
  ] as const),
]

export const anyElement: fc.Arbitrary<Element> = fc.record({
  kind: fc.oneof(
    ...(Object.entries(KINDS) as [Kind, readonly [number, unknown]][]).map(([kind, [weight]]) => ({
      weight,
      arbitrary: fc.constant(kind),
    })),
  ),
  on: fc.nat(1_000_000),
  how: fc.nat(7),
})

export async function take({ kind, on, how }: Element, world: SimulatedWorld): Promise<void> {
  await KINDS[kind][1](world, on, how)
}

/** Lets some of the possible steps happen, in a chosen order. */
async function goOn(world: SimulatedWorld, on: number, how: number): Promise<void> {
  let chance = on
  for (let i = 0; i <= 2 * how; i++) {
    chance = (Math.imul(chance, 1_103_515_245) + 12_345) >>> 1
    const action = pick(world.actions(), chance >>> 8)
    if (!action) return
    await world.act(action)
  }
}

async function wait(world: SimulatedWorld, _on: number, how: number): Promise<void> {
  world.advance(WAITS_MS[how] as number)
  world.stir()
}

const PASSING_MS = [1_000, 3_000, 8_000, 16_000, 30_000, 45_000, 60_000, 100_000]

async function letTimePass(world: SimulatedWorld, _on: number, how: number): Promise<void> {
  const ms = PASSING_MS[how] as number
  world.tell(`${ms / 1000} s pass`)
  await world.pass(ms)
}

function ask(world: SimulatedWorld, on: number, how: number): void {
  world.produce(nextCommand(world, on, how))
}

function nextCommand(world: SimulatedWorld, on: number, how: number): PayoutCommand {
  const merchantId = on % 3 === 0 ? 'bolt' : 'acme'
  const number = world.commands.length + 1
  return {
    ...SALARY,
    merchantId,
    payoutId: `P${number}`,
    amount: AMOUNTS[how % 4] as PayoutCommand['amount'],
    accountName: NAMES[how % 4] as string,
    accountNo: `5010000000${String(number).padStart(4, '0')}`,
    deadline: how === 4 ? world.now + 40_000 : null,
    notBefore: how === 5 ? world.now + 5_000 : null,
    priority: how === 6 ? 9 : 0,
  }
}

const SALARY: Omit<PayoutCommand, 'merchantId' | 'payoutId' | 'amount' | 'accountName' | 'accountNo'> = {
  batchId: null,
  rowNumber: null,
  fileHash: null,
  currency: 'INR',
  beneficiaryId: null,
  bankCode: 'BANK',
  ifsc: 'HDFC0000001',
  vpa: null,
  phoneNumber: null,
  payerEmail: null,
  remark: null,
  priority: 0,
  notBefore: null,
  deadline: null,
  metadata: {},
}

/** The same command once more, or another amount or account under the same id. */
function askAgain(world: SimulatedWorld, on: number, how: number): void {
  const command = pick(world.commands, on)
  if (!command) return
  if (how < 4) world.produce(command)
  else if (how < 6) world.produce({ ...command, amount: paise(command.amount + 10_000n) })
  else world.produce({ ...command, accountNo: '50199999999999' })
}

/** The same payment to the same payee, under its own id. */
function askForTheSame(world: SimulatedWorld, on: number): void {
  const command = pick(world.commands, on)
  if (command) world.produce({ ...command, payoutId: `P${world.commands.length + 1}` })
}

function cancelByCommand(world: SimulatedWorld, on: number): void {
  const command = pick(world.commands, on)
  if (command) world.produceCancel(command)
}

function cancelFirst(world: SimulatedWorld, on: number, how: number): void {
  const command = nextCommand(world, on, how)
  world.produceCancel(command)
  world.oracle.cancelsFirst(command)
  world.produce(command)
}

const waiting = sql<object, { merchantId: string; payoutId: string; orderNo: string }>`
  select merchant_id, payout_id, order_no from payouts
  where state in ('queued', 'held') and attempt = 0 order by 1, 2`
const setAmount = sql<{ merchantId: string; payoutId: string }>`
  update payouts set amount = amount + 100 where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

/** Somebody with write access to the database raises an amount. */
async function tamper(world: SimulatedWorld, on: number): Promise<void> {
  const { db } = world.postgres
  const payout = pick(await db.run(waiting, {}), on)
  if (!payout) return
  await db.run(setAmount, payout)
  world.oracle.isTamperedWith(payout)
  world.tell(`somebody changes the amount of ${payout.payoutId} in the database`)
}

function answerOtherwise(world: SimulatedWorld, on: number, how: number): void {
  const verdict = pick(VERDICTS, on) as (typeof VERDICTS)[number]
  const applies = 1 + (how % 3)
  for (let i = 0; i < applies; i++) world.gateway.verdicts.push(verdict)
  world.tell(`of the next ${applies === 1 ? 'apply' : `${applies} applies`} the gateway ${verdict}`)
}

/** A request or its answer gets lost; the caller may give up at once, or wait. */
function loseCall(world: SimulatedWorld, on: number, how: number): void {
  const call = pick(world.calls, on)
  if (!call) return
  world.tell(`${call.reply === null ? 'a request' : 'an answer'} gets lost: ${world.aboutCall(call)}`)
  if (how < 4 && !call.over && call.actor.alive) world.giveUp(call)
  if (how % 2 === 0) call.isLost = true
}

function endOrder(world: SimulatedWorld, on: number, how: number): void {
  const { gateway } = world
  const order = pick(
    gateway.orders.filter(({ status }) => status === 'processing'),
    on,
  )
  if (!order) return
  gateway.end(order, how < 6 ? 'success' : 'failed', world.now)
  world.tell(`at the gateway the order of ${world.oracle.payoutOf(order.mchOrderNo)} is ${order.status}`)
}

function giveBack(world: SimulatedWorld, on: number): void {
  const { gateway } = world
  const order = pick(
    gateway.orders.filter(({ status, amount }) => status === 'success' && amount > 100n),
    on,
  )
  if (!order) return
  gateway.giveBack(order, world.now)
  world.oracle.doubts(order)
  world.tell(`the money of ${world.oracle.payoutOf(order.mchOrderNo)} comes back to the gateway`)
}

/** The gateway still accepts orders; if it cannot find them, it may not be able to say so either. */
function goBlind(world: SimulatedWorld, on: number, how: number): void {
  const { gateway } = world
  const ms = PASSING_MS[how] as number
  gateway.blindUntil = world.now + ms
  if (on % 2 === 0) gateway.verdicts.push(UNREADABLE, UNREADABLE)
  const silent = on % 2 === 0 ? ', and answers what nobody can read to two applies' : ''
  world.tell(`the gateway finds nobody's orders for ${ms / 1000} s${silent}`)
}

function hang(world: SimulatedWorld, on: number): void {
  const mchId = pick([...world.gateway.accounts.keys()], on) as string
  if (!world.hanging.delete(mchId)) world.hanging.add(mchId)
  const hangs = world.hanging.has(mchId) ? 'hangs' : 'goes on'
  world.tell(`the gateway of ${world.merchantOf(mchId)}, account ${mchId}, ${hangs}`)
}

/** Only at accounts that have an order: nothing else could show that answers are mixed up. */
function mixUp(world: SimulatedWorld, on: number): void {
  if (!world.rules.hasPaid) return
  const mchId = pick([...world.gateway.accounts.keys()], on) as string
  const isOver = world.behind.delete(mchId)
  if (!isOver) world.behind.set(mchId, null)
  const says = isOver ? 'in time again' : 'one answer behind'
  world.tell(`the proxy before account ${mchId} of ${world.merchantOf(mchId)} is ${says}`)
}

function fund(world: SimulatedWorld, on: number): void {
  const mchId = pick([...world.gateway.accounts.keys()], on) as string
  world.gateway.fund(mchId, 100_000n)
  world.tell(`somebody pays into account ${mchId} of ${world.merchantOf(mchId)}`)
}

/** Kafka refuses every message about a payout. */
function refuseMessages(world: SimulatedWorld, on: number): void {
  const command = pick(world.commands, on)
  if (!command) return
  const key = payoutKey(command)
  const { refusedKeys } = world.kafka
  if (!refusedKeys.delete(key)) refusedKeys.add(key)
  world.tell(`Kafka ${refusedKeys.has(key) ? 'refuses' : 'takes'} messages about ${command.payoutId}`)
}

/** A callback on its way arrives once, or is lost. */
async function callBack(world: SimulatedWorld, on: number, how: number): Promise<void> {
  const callback = pick(world.gateway.callbacks, on)
  const process = pick(running(world), how)
  if (callback && process) await world.act(world.callBack(callback, process))
}

/** Signed by another key, about any payout. */
async function callBackFalsely(world: SimulatedWorld, on: number, how: number): Promise<void> {
  const { gateway } = world
  const process = pick(running(world), on)
  const command = pick(world.commands, how)
  if (!process || !command) return
  const { mchId } = world.merchants.get(command.merchantId) as Merchant
  const about = { mchId, mchOrderNo: orderNumber(command.merchantId, command.payoutId, 1) }
  const { agentpayOrderId = 'AP999' } = gateway.of(mchId, about.mchOrderNo)[0] ?? {}
  const status = on % 2 === 0 ? 'success' : 'failed'
  const fields = reportOf({ ...about, agentpayOrderId, amount: command.amount, status })
  await world.act(world.callBack(gateway.callbackAbout(about, fields, 'a forger'), process))
}

/**
 * Signed well, but with a wrong state of its order. For an order that the gateway never had, a signed report would
 * mean that the ledger was set back.
 */
async function callBackWrongly(world: SimulatedWorld, on: number, how: number): Promise<void> {
  const { gateway, oracle } = world
  const process = pick(running(world), on)
  const order = pick(
    gateway.orders.filter(({ status }) => how > 5 || status === 'processing'),
    on,
  )
  if (!process || !order) return
  const fields = reportOf({ ...order, status: on % 2 === 0 ? 'success' : 'failed' })
  const wrong =
    how < 5
      ? { ...fields, amount: String(order.amount + 100n) }
      : how < 7
        ? { ...fields, status: '9' }
        : { ...fields, mchOrderNo: 'PNOBODY' }
  oracle.doubts(order)
  await world.act(world.callBack(gateway.callbackAbout(order, wrong), process))
}

const UNREADABLE: (typeof VERDICTS)[number] = 'takes it, and answers what nobody can read'

const MET: Trap['by'][] = ['a cut', 'a crash', 'a freeze']

/** The next step of a kind is cut, or its actor is killed or frozen, before or after it. */
function meetFault(world: SimulatedWorld, on: number, how: number): void {
  if (how === 7) {
    const process = pick(world.processes, on)
    if (process) world.crash(process)
    return
  }
  const kind = (['transaction', 'transaction', 'send', 'publish'] as const)[on % 4] as Trap['kind']
  world.trap = {
    kind,
    moment: how % 2 === 0 ? 'before' : 'after',
    by: MET[(on >>> 4) % MET.length] as Trap['by'],
  }
}

function freezeOrThaw(world: SimulatedWorld, on: number): void {
  const process = pick(world.processes, on)
  if (process?.frozen) world.thaw(process)
  else if (process) world.freeze(process)
}

function goAwayOrComeBack(world: SimulatedWorld, on: number): void {
  const { away } = world
  const what = (['database', 'kafka', 'gateway'] as const)[on % 3] as 'kafka'
  if (!away.delete(what)) away.add(what)
  world.stir()
  world.tell(`the ${what} is ${away.has(what) ? 'away' : 'back'}`)
}

/** Sets the database's clock a few seconds forward or back. */
function setClock(world: SimulatedWorld, _on: number, how: number): void {
  world.databaseAheadMs += (how - 4) * 1_500
  world.stir()
  world.tell(`the database's clock is ${world.databaseAheadMs} ms ahead`)
}

/** Two processes believe to own a partition. */
function sharePartition(world: SimulatedWorld, on: number, how: number): void {
  const process = pick(world.processes, on)
  const partition = how % 2
  if (!process) return
  if (world.processes.some((other) => other !== process && other.partitions.has(partition))) {
    if (!process.partitions.delete(partition)) process.partitions.add(partition)
  }
  world.stir()
}

/**
 * A failover that no payoutd process sees, as none runs, and that sometimes loses a claim whose apply has left. A
 * planned one follows, of which a person truthfully says that it lost nothing.
 */
export async function failOverUnseen(world: SimulatedWorld, on: number, how: number): Promise<void> {
  if (how > 2) await sendWhatIsLost(world, on, how)
  for (const process of [...world.processes]) world.crash(process)
  if (how > 1) await world.failOver()
  await world.failOver({ byPlan: true })
  await world.vouch()
}

/** The claim alone is not copied, and the gateway accepts the order. It waits until its merchant's gateway is back. */
async function sendWhatIsLost(world: SimulatedWorld, on: number, how: number): Promise<void> {
  const command = nextCommand(world, on, how)
  const orderNo = orderNumber(command.merchantId, command.payoutId, 1)
  const wasAway = world.away.has('gateway')
  world.away.add('gateway')
  world.produce(command)
  await goOnUntil(world, async () =>
    (await world.postgres.db.run(waiting, {})).some((payout) => payout.orderNo === orderNo),
  )
  await world.copy()
  if (!wasAway) world.away.delete('gateway')
  const isItsApply = ({ mchOrderNo }: SimulatedWorld['calls'][number]) => mchOrderNo === orderNo
  await goOnUntil(world, async () => world.calls.some(isItsApply))
  for (const call of world.calls.filter(isItsApply))
    call.reply = world.gateway.take(call.request, world.now).reply
}

async function goOnUntil(world: SimulatedWorld, isSo: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 2 * SOON; i++) {
    world.setDatabaseClock()
    if (await isSo()) return
    const [first] = world.actions()
    if (first) await world.act(first)
    else if (!(await world.wait(world.now + 60_000))) return
  }
}

const inReview = sql<
  object,
  {
    merchantId: string
    payoutId: string
    orderNo: string
    attempt: number
    agentpayOrderId: string | null
    cancelRequest: string | null
  }
>`
  select merchant_id, payout_id, order_no, attempt, agentpay_order_id, cancel_request from payouts
  where state = 'review' and reason <> 'end-published' order by 1, 2`

const SOON = 60

/** The order of the next apply that leaves, if one does soon. */
async function applyUnderWay(world: SimulatedWorld, on: number, how: number): Promise<string | null> {
  world.produce(nextCommand(world, on, how))
  for (let i = 0; i < SOON; i++) {
    const leaving = world.calls.find(
      ({ request, reply }) => request.path.endsWith('/agentpay/apply') && reply === null,
    )
    if (leaving) return leaving.mchOrderNo
    const action = pick(world.actions(), (on >>> 3) + i)
    if (!action) return null
    await world.act(action)
  }
  return null
}

/** Any payout, or one whose apply is on its way to a gateway that answers "later". */
async function cancel(world: SimulatedWorld, on: number, how: number): Promise<void> {
  const mchOrderNo = how < 4 ? null : await applyUnderWay(world, on, how)
  if (mchOrderNo) world.gateway.verdicts.unshift('turns away')
  const payout =
    world.commands.find((each) => orderNumber(each.merchantId, each.payoutId, 1) === mchOrderNo) ??
    pick(world.commands, on)
  if (!payout) return
  world.setDatabaseClock()
  const { merchantId, payoutId } = payout
  world.tell(`a person cancels ${payoutId}`)
  await cancelPayouts(
    { merchantId, payoutIds: [payoutId], ...BY, reason: 'left' },
    await world.personsLedger(),
  )
  await world.oracle.cancels(payout)
  world.stir()
}

const held = sql<object, { merchantId: string; payoutId: string }>`
  select merchant_id, payout_id from payouts where state = 'held' order by 1, 2`

/** Any held payout, also one that only waits for its time. */
async function release(world: SimulatedWorld, on: number): Promise<void> {
  world.setDatabaseClock()
  const payout = pick(await world.postgres.db.run(held, {}), on)
  if (!payout) return
  const { merchantId, payoutId } = payout
  world.tell(`a person releases ${payoutId}`)
  const asked = { merchantId, payoutIds: [payoutId], ...BY, reason: 'two months' }
  const request = { ...asked, payPeriod: 'month', known: null, shown: null } as const
  await releasePayouts(request, await world.personsLedger())
  world.stir()
}

async function pauseOrResume(world: SimulatedWorld, on: number, how: number): Promise<void> {
  const merchantId = pick([...world.merchants.keys()], on) as string
  world.setDatabaseClock()
  if (how < 4) await world.pause(merchantId)
  else await world.resume(merchantId)
}

/** Then either all processes restart, or none. */
async function changeAccount(world: SimulatedWorld, on: number, how: number): Promise<void> {
  await world.changeAccount(pick([...world.merchants.keys()], on) as string)
  if (how < 4) world.startAgain()
}

async function failOver(world: SimulatedWorld): Promise<void> {
  await world.failOver()
}

const BY = { by: 'meera', reason: 'asked the gateway' }

/**
 * A person looks at a payout in review, unless its end was published before the ledger was set back, and asks the
 * people of every gateway account that may have it.
 */
async function decide(world: SimulatedWorld, on: number): Promise<void> {
  const { postgres, gateway, merchants } = world
  world.setDatabaseClock()
  const payout = pick(await postgres.db.run(inReview, {}), on)
  if (!payout) return
  const { merchantId, payoutId, orderNo, attempt } = payout
  const merchant = merchants.get(merchantId) as Merchant
  const { accountId, settingsHash } = accountOf(merchant)
  const order = gateway.orders.findLast(
    ({ mchId, mchOrderNo }) => mchOrderNo === orderNo && world.merchantOf(mchId) === merchantId,
  )
  // An order that may still arrive is not absent.
  if (!order && world.calls.some(({ mchOrderNo }) => mchOrderNo === orderNo)) return
  if (order?.status === 'processing') return
  const resolution = order
    ? order.status === 'success'
      ? ({ kind: 'paid', utr: reportOf(order).channelPayNo as string } as const)
      : ({ kind: 'failed' } as const)
    : ({
        kind: 'resend',
        cancelRequest: payout.cancelRequest,
        attempt,
        confirmedAbsentBy: 'gateway support',
        deadline: null,
        terms: {
          ...promisesOf(merchant.dialect),
          accountId,
          settingsHash,
          deadlineMs: 60_000,
        },
      } as const)
  world.tell(`a person looks at ${payoutId}: ${resolution.kind}`)
  if (resolution.kind === 'resend') world.oracle.resends(payout)
  await resolvePayout({ merchantId, payoutId, resolution, shown: null, ...BY }, await world.personsLedger())
  world.stir()
}
