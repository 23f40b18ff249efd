import fc from 'fast-check'
import type { Merchant } from '../../src/config/merchants.ts'
import { accountOf } from '../../src/gateway/account.ts'
import { cancelPayouts } from '../../src/operations/cancel-payouts.ts'
import { resolvePayout } from '../../src/operations/resolve-payout.ts'
import type { PayoutCommand } from '../../src/payout/command.ts'
import { orderNumber } from '../../src/payout/identifiers.ts'
import { paise } from '../../src/payout/money.ts'
import { sql } from '../../src/platform/postgres.ts'
import { reportOf, VERDICTS } from './gateway.ts'
import type { Process } from './process.ts'
import type { Trap, World } from './world.ts'

/** One element of a story: `on` chooses among what is there, `how` among what may be done to it. */
export type Element = { kind: Kind; on: number; how: number }

const AMOUNTS = [20_000n, 50_000n, 70_000n, 30_000n].map((amount) => paise(amount))
const WAITS_MS = [20, 100, 500, 1_000, 3_000, 8_000, 16_000, 45_000]
const NAMES = ['Asha Rao', 'Ravi Kumar', 'Meera Shah', 'John Mathew']

const pick = <T>(from: readonly T[], on: number): T | undefined => from[on % from.length]
const running = (world: World): Process[] => world.processes.filter(({ frozen }) => !frozen)

/** What can happen, and how often among all that happens. */
const KINDS = {
  'goes on': [40, goOn],
  waits: [8, wait],
  'asks for a payout': [9, ask],
  'asks again': [1, askAgain],
  'cancels by command': [1, cancelByCommand],
  'is answered otherwise': [6, answerOtherwise],
  'loses a call': [6, loseCall],
  'ends an order': [6, endOrder],
  'calls back': [6, callBack],
  'calls back falsely': [3, callBackFalsely],
  'meets trouble': [8, meetTrouble],
  'is frozen or goes on': [3, freezeOrThaw],
  'is away or back': [2, goAwayOrComeBack],
  'has its clock set': [1, setClock],
  'shares a partition': [1, sharePartition],
  'is decided by a person': [4, decide],
} as const satisfies Record<
  string,
  readonly [number, (world: World, on: number, how: number) => Promise<void> | void]
>
type Kind = keyof typeof KINDS

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

export async function take({ kind, on, how }: Element, world: World): Promise<void> {
  await KINDS[kind][1](world, on, how)
}

/** Some of what may happen now happens, in an order of its own. */
async function goOn(world: World, on: number, how: number): Promise<void> {
  let chance = on
  for (let i = 0; i <= 2 * how; i++) {
    chance = (Math.imul(chance, 1_103_515_245) + 12_345) >>> 1
    const action = pick(world.actions(), chance >>> 8)
    if (!action) return
    await world.act(action)
  }
}

async function wait(world: World, _on: number, how: number): Promise<void> {
  world.advance(WAITS_MS[how] as number)
  world.stir()
}

function ask(world: World, on: number, how: number): void {
  const merchantId = on % 3 === 0 ? 'bolt' : 'acme'
  const number = world.commands.length + 1
  world.produce({
    ...SALARY,
    merchantId,
    payoutId: `P${number}`,
    amount: AMOUNTS[how % 4] as PayoutCommand['amount'],
    accountName: NAMES[how % 4] as string,
    accountNo: `5010000000${String(number).padStart(4, '0')}`,
    deadline: how === 4 ? world.now + 40_000 : null,
    notBefore: how === 5 ? world.now + 5_000 : null,
    priority: how === 6 ? 9 : 0,
  })
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

/** The same once more, or another amount or account under the same id. */
function askAgain(world: World, on: number, how: number): void {
  const command = pick(world.commands, on)
  if (!command) return
  if (how < 4) world.produce(command)
  else if (how < 6) world.produce({ ...command, amount: paise(command.amount + 10_000n) })
  else world.produce({ ...command, accountNo: '50199999999999' })
}

function cancelByCommand(world: World, on: number): void {
  const command = pick(world.commands, on)
  if (command) world.produceCancel(command)
}

function answerOtherwise(world: World, on: number): void {
  const verdict = pick(VERDICTS, on) as (typeof VERDICTS)[number]
  world.gateway.verdicts.push(verdict)
  world.tell(`of the next apply the gateway ${verdict}`)
}

/** A request gets lost, or its answer does; whoever asked may give up at once, or wait. */
function loseCall(world: World, on: number, how: number): void {
  const call = pick(world.calls, on)
  if (!call) return
  world.tell(`${call.reply === null ? 'a request' : 'an answer'} gets lost: ${world.aboutCall(call)}`)
  if (how < 4 && !call.over && call.process.alive) world.giveUp(call)
  if (how % 2 === 0) world.lose(call)
}

function endOrder(world: World, on: number, how: number): void {
  const { gateway } = world
  const order = pick(
    gateway.orders.filter(({ status }) => status !== 'failed'),
    on,
  )
  if (!order) return
  if (order.status === 'success') {
    if (how !== 0) return
    gateway.giveBack(order, world.now)
    world.oracle.doubts(order)
  } else gateway.end(order, how < 6 ? 'success' : 'failed', world.now)
  world.tell(`at the gateway the order of ${world.oracle.payoutOf(order.mchOrderNo)} is ${order.status}`)
}

/** A callback on its way comes: once, or is lost. */
async function callBack(world: World, on: number, how: number): Promise<void> {
  const callback = pick(world.gateway.callbacks, on)
  const process = pick(running(world), how)
  if (callback && process) await world.act(world.callBack(callback, process))
}

/** Signed by another key, about any payout; or signed well, and not about what its order number stands for here. */
async function callBackFalsely(world: World, on: number, how: number): Promise<void> {
  const { gateway, oracle } = world
  const process = pick(running(world), on)
  const command = pick(world.commands, on)
  if (!process || !command) return
  const { mchId } = world.merchants.get(command.merchantId) as { mchId: string }
  const mchOrderNo = orderNumber(command.merchantId, command.payoutId, 1)
  const about = { mchId, mchOrderNo }
  const [order] = gateway.of(mchId, mchOrderNo)
  const { agentpayOrderId = 'AP999' } = order ?? {}
  const status = on % 2 === 0 ? 'success' : 'failed'
  const fields = reportOf({ ...about, agentpayOrderId, amount: command.amount, status })
  if (how < 4) {
    await world.act(world.callBack(gateway.callbackAbout(about, fields, 'a forger'), process))
    return
  }
  // Of an order that the gateway never had, a signed word means that the ledger was set back: another story.
  if (!order) return
  const wrong =
    how < 6
      ? { ...fields, amount: String(order.amount + 100n) }
      : how === 6
        ? { ...fields, status: '9' }
        : { ...fields, mchOrderNo: 'PNOBODY' }
  oracle.doubts(order)
  await world.act(world.callBack(gateway.callbackAbout(about, wrong), process))
}

const MET: Trap['by'][] = ['a cut', 'a crash', 'a crash', 'a freeze']

/** The next step of a kind is cut, or whoever takes it is killed or frozen, before it or behind it. */
function meetTrouble(world: World, on: number, how: number): void {
  if (how === 7) {
    const process = pick(world.processes, on)
    if (process) world.crash(process)
    return
  }
  const kind = (['transaction', 'transaction', 'transaction', 'send', 'publish'] as const)[
    on % 5
  ] as Trap['kind']
  world.trap = {
    kind,
    moment: how % 2 === 0 ? 'before' : 'after',
    by: MET[(on >>> 4) % MET.length] as Trap['by'],
  }
}

function freezeOrThaw(world: World, on: number): void {
  const process = pick(world.processes, on)
  if (process?.frozen) world.thaw(process)
  else if (process) world.freeze(process)
}

function goAwayOrComeBack(world: World, on: number): void {
  const { away } = world
  const what = (['database', 'kafka', 'gateway'] as const)[on % 3] as 'kafka'
  if (!away.delete(what)) away.add(what)
  world.stir()
  world.tell(`the ${what} is ${away.has(what) ? 'away' : 'back'}`)
}

/** The database's clock is set: a few seconds on or back. */
function setClock(world: World, _on: number, how: number): void {
  world.databaseAheadMs += (how - 4) * 1_500
  world.stir()
  world.tell(`the database's clock is ${world.databaseAheadMs} ms ahead`)
}

/** Two processes believe to own a partition. */
function sharePartition(world: World, on: number, how: number): void {
  const process = pick(world.processes, on)
  const partition = how % 2
  if (!process) return
  if (world.processes.some((other) => other !== process && other.partitions.has(partition))) {
    if (!process.partitions.delete(partition)) process.partitions.add(partition)
  }
  world.stir()
}

const inReview = sql<
  object,
  { merchantId: string; payoutId: string; orderNo: string; agentpayOrderId: string | null }
>`
  select merchant_id, payout_id, order_no, agentpay_order_id from payouts where state = 'review' order by 1, 2`

/** A person cancels, pauses and resumes, or looks at a payout in review and asks the gateway's people. */
async function decide(world: World, on: number, how: number): Promise<void> {
  const { postgres, gateway, merchants } = world
  const by = 'meera'
  world.setDatabaseClock()
  if (how === 0) {
    const command = pick(world.commands, on)
    if (!command) return
    const { merchantId, payoutId } = command
    world.tell(`a person cancels ${payoutId}`)
    await cancelPayouts({ merchantId, payoutIds: [payoutId], by, reason: 'left' }, world.personsLedger)
    world.stir()
    return
  }
  const [payout] = await postgres.db.run(inReview, {})
  if (!payout) return
  const { merchantId, payoutId, orderNo } = payout
  const merchant = merchants.get(merchantId) as Merchant
  const { mchId } = merchant
  const order = gateway.of(mchId, orderNo).at(-1)
  // What still may arrive is not absent.
  if (!order && world.calls.some(({ mchOrderNo }) => mchOrderNo === orderNo)) return
  if (order?.status === 'processing') return
  const resolution = order
    ? order.status === 'success'
      ? ({ kind: 'paid', utr: reportOf(order).channelPayNo as string } as const)
      : ({ kind: 'failed' } as const)
    : ({
        kind: 'resend',
        confirmedAbsentBy: 'gateway support',
        deadline: null,
        terms: {
          accountId: accountOf(merchant).accountId,
          duplicatesRefused: world.rules.refusesDuplicates,
          deadlineMs: 60_000,
        },
      } as const)
  world.tell(`a person looks at ${payoutId}: ${resolution.kind}`)
  await resolvePayout(
    { merchantId, payoutId, resolution, by, reason: 'asked the gateway' },
    world.personsLedger,
  )
  world.stir()
}
