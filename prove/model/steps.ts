import fc from 'fast-check'
import type { PayoutCommand } from '../../src/payout/command.ts'
import { formatRupees, paise } from '../../src/payout/money.ts'
import type { Payout } from '../../src/payout/payout.ts'
import type { Resolution } from '../../src/payout/resolve.ts'
import { UTR, unanswered, type Verdict } from './gateway.ts'
import { DEADLINE_MS } from './intake.ts'
import { ConnectionCut, store } from './ledger.ts'
import type { Fate } from './network.ts'
import type { Point, Process } from './process.ts'
import { FEE } from './rules.ts'
import type { World } from './world.ts'

/** One choice of the scheduler. `on` and `how` pick among what is there at that moment. */
export type Step = { kind: number; on: number; how: number }

type Kind = {
  name: string
  /** How often it is chosen, beside the others. */
  weight: number
  /** Does nothing where there is nothing to do it to. */
  take: (world: World, on: number, how: number) => void
}

const pick = <T>(list: readonly T[], n: number): T | undefined => list[n % list.length]

const POINTS: readonly Point[] = [
  'claimed',
  'claimed',
  'checked',
  'answered',
  'sent',
  'asked',
  'read',
  'published',
]
const FATES: readonly Fate[] = [
  'answer lost',
  'lost on the way',
  'answer garbled',
  'not found for long',
  'connection refused',
  'too fast',
  'refuse',
  'pay at once',
  'break down',
]
const AMOUNTS = [10_000, 25_000, 50_000, 12_345].map((amount) => paise(amount))
const VERDICTS: readonly Verdict[] = [
  'accept',
  'pay at once',
  'accept',
  'refuse',
  'accept',
  'too fast',
  'accept',
  'break down',
]
const WHILES_MS = [0, 0, 2_000, 5_000, 20_000, 60_000, 150_000, 150_000]
const WAITS_MS = [100, 1_000, 3_000, 5_000, 8_000, 15_000, 20_000, DEADLINE_MS / 2]

/** Everything that the scheduler may do next. The simplest come first: a story is shrunk towards them. */
const KINDS: readonly Kind[] = [
  {
    name: 'all goes on for a while',
    weight: 14,
    take: (world, _on, how) => {
      const until = world.clock.now + (WHILES_MS[how] as number)
      do world.settle()
      while (world.clock.now < until && world.wait())
    },
  },
  { name: 'a turn of everybody', weight: 6, take: (world) => void world.goOn() },
  {
    name: 'a process works',
    weight: 20,
    take: ({ processes }, on, how) => work(pick(processes, on), how),
  },
  {
    name: 'time goes on',
    weight: 12,
    take: (world, on, how) => world.advance((WAITS_MS[how] as number) + on),
  },
  { name: 'a payout is asked for', weight: 8, take: askFor },
  {
    name: 'a call arrives',
    weight: 14,
    take: (world, on, how) => {
      const call = pick(world.network.onTheWay, on)
      const slow = on > 3 ? world.rules.foundWithinMs : 0
      if (call) world.arrive(call, VERDICTS[how] as Verdict, slow)
    },
  },
  {
    name: 'an answer comes',
    weight: 12,
    take: (world, on) => {
      const call = pick(world.network.comingBack, on)
      if (call) world.answer(call)
    },
  },
  { name: 'an answer does not come as it was', weight: 5, take: spoil },
  { name: 'the gateway ends an order', weight: 6, take: endOrder },
  { name: 'a callback comes', weight: 8, take: callBack },
  {
    name: 'the gateway says that it is at it',
    weight: 3,
    take: ({ gateway }, on, how) => {
      const order = pick(
        gateway.orders.filter(({ status }) => status === 'processing'),
        on,
      )
      if (!order) return
      const report = gateway.report(order)
      gateway.callbacks.push(how < 6 ? report : { ...report, agentpayOrderId: null })
    },
  },
  { name: 'a callback about something else comes', weight: 3, take: callBackAmiss },
  {
    name: 'a payout is cancelled',
    weight: 3,
    take: (world, on) => {
      const payoutId = `P${on + 1}`
      world.topic.push({ kind: 'cancel', payoutId })
      world.tell(() => `upstream cancels ${payoutId}`)
    },
  },
  { name: 'a person decides', weight: 16, take: decide },
  {
    name: 'a process crashes',
    weight: 4,
    take: (world, on, how) => {
      const process = pick(world.processes, on)
      if (process) world.crash(process, how > 4 ? 'wrong' : 'right')
    },
  },
  {
    name: 'a process is frozen',
    weight: 3,
    take: (world, on) => {
      const process = pick(world.processes, on)
      if (process) world.freeze(process)
    },
  },
  {
    name: 'a process will be stopped at some point',
    weight: 8,
    take: (world, on, how) => {
      world.trap = { point: pick(POINTS, on) as Point, by: how > 2 ? 'freeze' : 'crash' }
    },
  },
  {
    name: 'the next apply will have a fate',
    weight: 10,
    take: (world, on, how) => void world.fates.push(pick(FATES, on + 8 * (how % 2)) as Fate),
  },
  {
    name: 'a frozen process goes on',
    weight: 5,
    take: (world, on) => {
      const process = pick(
        world.processes.filter(({ frozen }) => frozen),
        on,
      )
      if (!process) return
      process.frozen = false
      world.tell(() => `${process.name} goes on`)
    },
  },
  {
    name: 'the next commit gets lost',
    weight: 3,
    take: ({ ledger }, on) => {
      ledger.cut = on % 2 === 0 ? 'before the commit' : 'after the commit'
    },
  },
  {
    name: 'the gateway gives money back',
    weight: 1,
    take: (world, on) => {
      const { gateway } = world
      const order = pick(
        gateway.orders.filter(({ status }) => status === 'success'),
        on,
      )
      if (!order) return
      gateway.giveBack(order)
      world.tell(() => `the gateway gives back what it paid for ${world.payoutOf(order.mchOrderNo)}`)
    },
  },
  {
    name: 'the balance changes',
    weight: 2,
    take: (world, on, how) => {
      const { gateway } = world
      const after = how < 4 ? gateway.available + 50_000n : gateway.available / BigInt(on + 1)
      if (after < gateway.available) gateway.unforeseen += gateway.available - after
      gateway.available = paise(after)
      world.tell(() => `others change the balance to ${formatRupees(gateway.available)}`)
    },
  },
]

/** One piece of what it could do now. */
function work(process: Process | undefined, how: number): void {
  pick(process?.work() ?? [], how)?.run()
}

const TOTAL = KINDS.reduce((sum, { weight }) => sum + weight, 0)
/** The number of a kind for each number below the total of weights. */
const BY_WEIGHT = KINDS.flatMap(({ weight }, kind) => Array<number>(weight).fill(kind))

export const anyStep: fc.Arbitrary<Step> = fc
  .tuple(fc.nat(TOTAL - 1), fc.nat(7), fc.nat(7))
  .map(([n, on, how]) => ({ kind: BY_WEIGHT[n] as number, on, how }))

export function take({ kind, on, how }: Step, world: World): void {
  KINDS[kind]?.take(world, on, how)
}

function askFor(world: World, on: number, how: number): void {
  const payoutId = `P${on + 1}`
  const amount = AMOUNTS[how % 4] as PayoutCommand['amount']
  const deadline = how === 4 || how === 6 ? world.clock.now + 40_000 : null
  const notBefore = how === 5 ? world.clock.now + 5_000 : null
  world.topic.push({ kind: 'pay', command: { ...SALARY, payoutId, amount, deadline, notBefore } })
  const when = `${deadline ? ', by 40 s from now' : ''}${notBefore ? ', in 5 s' : ''}`
  world.tell(() => `upstream asks for ${payoutId}: ${formatRupees(amount)}${when}`)
}

const SALARY: Omit<PayoutCommand, 'payoutId' | 'amount' | 'deadline' | 'notBefore'> = {
  merchantId: 'acme',
  batchId: null,
  rowNumber: null,
  fileHash: null,
  currency: 'INR',
  beneficiaryId: null,
  accountName: 'Asha Rao',
  accountNo: '50100000000001',
  bankCode: 'BANK',
  ifsc: 'HDFC0000001',
  vpa: null,
  phoneNumber: null,
  payerEmail: null,
  remark: null,
  priority: 0,
  metadata: {},
}

/** A call gets lost, or its connection is refused, or what comes back is no answer. */
function spoil(world: World, on: number, how: number): void {
  const { network } = world
  const call = pick(network.calls, on)
  if (!call) return
  const about = call.about === null ? 'the balance' : call.about.payoutId
  network.lose(call)
  if (how < 3) {
    world.tell(() => `the ${call.kind} for ${about} gets lost, or its answer`)
    return
  }
  const reason = (['http-status', 'unparsable', 'unlisted-code'] as const)[how % 3] as 'unparsable'
  if (call.kind === 'balance') call.answer = 'unknown'
  else if (call.kind === 'query') call.answer = unanswered(reason)
  else if (how > 5 && call.reply === null)
    call.answer = { kind: 'not-sent', reason: 'ECONNREFUSED', exchange: {} }
  else call.answer = unanswered(reason)
  world.tell(() => `what comes back of the ${call.kind} for ${about} says nothing`)
}

function endOrder(world: World, on: number, how: number): void {
  const { gateway } = world
  const order = pick(
    gateway.orders.filter(({ status }) => status === 'processing'),
    on,
  )
  if (!order) return
  if (how < 5) gateway.pay(order)
  else gateway.fail(order)
  world.tell(() => `the gateway ends the order of ${world.payoutOf(order.mchOrderNo)}: ${order.status}`)
}

/** Any of those on their way: once, or again later, or never. */
function callBack(world: World, on: number, how: number): void {
  const { gateway } = world
  const report = pick(gateway.callbacks, on)
  const process = pick(
    world.processes.filter(({ frozen }) => !frozen),
    how,
  )
  if (!report) return
  const without = () => {
    gateway.callbacks = gateway.callbacks.filter((each) => each !== report)
  }
  if (how === 7) without()
  else if (process?.hear(report) && how < 5) without()
}

/** Well signed, and not about what its order number stands for here. */
function callBackAmiss(world: World, on: number, how: number): void {
  const payout = pick([...world.ledger.tables.payouts.values()], on)
  const process = world.processes.find(({ frozen }) => !frozen)
  if (!payout?.orderNo || !process) return
  const status = how % 2 === 0 ? 'success' : 'failed'
  const report = {
    mchOrderNo: how > 5 ? 'PNOBODY' : payout.orderNo,
    agentpayOrderId: null,
    status: how === 5 ? 'unlisted' : status,
    amount: how < 5 ? paise(payout.amount + 100n) : payout.amount,
    fee: FEE,
    utr: null,
    errorMessage: null,
    exchange: {},
  } as const
  world.tell(
    () =>
      `the gateway signs a callback for ${payout.payoutId}: ${report.status}, ${formatRupees(report.amount)}, order ${report.mchOrderNo}`,
  )
  process.hear(report)
}

/** A person looks at a payout in review: asks the gateway's people, or is in a hurry and has it sent again. */
function decide(world: World, on: number, how: number): void {
  const { ledger, clock, parts } = world
  const payout = pick(
    [...ledger.tables.payouts.values()].filter(({ state }) => state === 'review'),
    on,
  )
  const resolution = payout && (how > 5 ? sendAgain(world, null) : resolutionOf(payout, world))
  if (!resolution) return
  const decision = parts.resolve(payout, resolution, { by: 'meera', reason: 'asked the gateway' }, clock.now)
  if ('refused' in decision) return
  world.tell(() => `a person looks at ${world.stands(payout.payoutId)}: ${resolution.kind}`)
  try {
    ledger.transaction((tables) => store(tables, [decision], clock.now))
  } catch (error) {
    if (!(error instanceof ConnectionCut)) throw error
  }
}

const sendAgain = ({ rules }: World, confirmedAbsentBy: string | null): Resolution => ({
  kind: 'resend',
  confirmedAbsentBy,
  deadline: null,
  terms: { duplicatesRefused: rules.duplicateApply === 'refused', deadlineMs: DEADLINE_MS },
})

/** The gateway's people say what they have. That they have nothing counts once nothing can come any more. */
function resolutionOf({ payoutId, orderNo, reason }: Payout, world: World): Resolution | null {
  const { gateway, ledger, clock, rules } = world
  const order = gateway.of(orderNo).at(-1)
  if (order?.status === 'success') return { kind: 'paid', utr: UTR }
  if (order) return order.status === 'failed' ? { kind: 'failed' } : null
  const since = ledger.tables.history.findLast(({ payout }) => payout.payoutId === payoutId)?.at ?? clock.now
  const awaited = reason !== 'proved-absent' && clock.now < since + rules.table.graceMs
  return awaited ? null : sendAgain(world, 'gateway support')
}
