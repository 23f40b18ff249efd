import { type Arrived, parametersOf } from '../callbacks.ts'
import type { Case } from '../case.ts'
import { demand, NotTried } from '../demand.ts'
import type { Subject, Taken } from '../subject.ts'
import type { ConformanceWorld } from '../world.ts'

/** Seconds between the tries of a payin callback (gateway contract, "Payin callback"). */
const INTERVALS = [60, 120, 180, 240, 300] as const
/** Allows for a server that looks for due callbacks only every few seconds. */
const LEEWAY_S = 30
/** A callback that comes too early would have arrived by then. */
const QUIET_MS = 100

const PAYIN = ['payOrderId', 'amount', 'mchId', 'mchOrderNo', 'backType', 'channelCode', 'status'] as const
const PAYOUT = ['amount', 'mchOrderNo', 'fee', 'agentpayOrderId', 'status'] as const

/** Gateway contract, "Events". */
export const callbacks: readonly Case[] = [
  {
    name: 'payin-callback/paid',
    about: 'the callback about a paid payin is a signed query string with its UTR and paySuccTime',
    async ask(subject) {
      const payin = await subject.paidPayin()
      const told = await firstAbout(subject, payin, [...PAYIN, 'channelPayNo', 'paySuccTime'])
      demand(told.get('payOrderId') === payin.platformNo, 'it names another payOrderId')
      demand(told.get('status') === '2', `status is ${told.get('status')}`)
      demand(/^\d{13}$/.test(told.get('paySuccTime') ?? ''), 'paySuccTime is not in milliseconds')
      return [...told.keys()].join(', ')
    },
  },
  {
    name: 'payin-callback/failed',
    about: 'the callback about a failed payin has status 3 and errorMessage',
    async ask(subject) {
      const told = await firstAbout(subject, await subject.declinedPayin(), [...PAYIN, 'errorMessage'])
      demand(told.get('status') === '3', `status is ${told.get('status')}`)
      return [...told.keys()].join(', ')
    },
  },
  {
    name: 'payin-callback/method',
    about: 'by which HTTP method a payin callback comes, and its backType and channelCode',
    open: true,
    async ask(subject) {
      const payin = await subject.paidPayin()
      const told = await firstAbout(subject, payin, PAYIN)
      const [first] = subject.callbacks.about(payin.mchOrderNo)
      return `${first?.method}, backType ${told.get('backType')}, channelCode ${told.get('channelCode')}`
    },
  },
  {
    name: 'payin-callback/retries',
    about: 'a payin callback that is not answered success comes again after 60, 120, 180, 240 and 300 s',
    async ask(subject) {
      const { world, passTime } = subject
      const whole = INTERVALS.reduce((sum, interval) => sum + interval + LEEWAY_S, 0)
      if (!passTime && subject.patienceMs < whole * 1000) {
        throw new NotTried(`takes a patience of ${whole} s`)
      }
      const payin = await subject.newPayin({ notifyUrl: subject.callbacks.urlOf('refused') })
      await world.pay(payin.platformNo)
      if (passTime) {
        const { kept, seen } = await repeatedAsTimePasses(subject, payin, passTime)
        demand(kept, seen)
        return seen
      }
      const all = await subject.callbacks.wait(payin.mchOrderNo, INTERVALS.length + 1, subject.patienceMs)
      return keptIntervals(all)
    },
  },
  {
    name: 'payout-callback/paid',
    about:
      'the callback about a payout is a POST with a signed query string that has its final status and UTR',
    async ask(subject) {
      const payout = await subject.payout()
      const told = await firstAbout(subject, payout, [...PAYOUT, 'channelPayNo'])
      demand(told.get('agentpayOrderId') === payout.platformNo, 'it names another agentpayOrderId')
      demand(told.get('status') === '2', `status is ${told.get('status')}`)
      const [first] = subject.callbacks.about(payout.mchOrderNo)
      demand(first?.method === 'POST', `it comes by ${first?.method}`)
      return [...told.keys()].join(', ')
    },
  },
  {
    name: 'payout-callback/failed',
    about: 'the callback about a failed payout has status 3 and errorMessage',
    async ask(subject) {
      const told = await firstAbout(subject, await subject.failedPayout(), [...PAYOUT, 'errorMessage'])
      demand(told.get('status') === '3', `status is ${told.get('status')}`)
      return [...told.keys()].join(', ')
    },
  },
  {
    name: 'payout-callback/retries',
    about: 'when a payout callback that is not answered success comes again',
    open: true,
    async ask(subject) {
      const { passTime } = subject
      const payout = await subject.newPayout({ notifyUrl: subject.callbacks.urlOf('refused') })
      if (passTime) return (await repeatedAsTimePasses(subject, payout, passTime)).seen
      const all = await subject.callbacks.wait(payout.mchOrderNo, INTERVALS.length + 1, subject.patienceMs)
      if (all.length < 2) throw new NotTried(`${all.length} came within the patience given`)
      return `after ${intervalsOf(all).join(', ')} s`
    },
  },
]

async function firstAbout(
  subject: Subject,
  { mchOrderNo }: Taken,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const [first] = await subject.callbacks.wait(mchOrderNo, 1, subject.patienceMs)
  demand(first !== undefined, 'no callback came')
  demand(first.body === '', 'it has a body')
  demand(subject.isSigned(first.query), 'its signature is wrong')
  const told = parametersOf(first.query) ?? new Map<string, string>()
  const missing = names.filter((name) => !told.get(name))
  demand(missing.length === 0, `it lacks ${missing.join(', ')}`)
  demand(told.get('amount') === '100', `amount is ${told.get('amount')}`)
  return told
}

/** Checks, as time is moved forward, that a callback comes again at the contract's intervals, never much too early. */
async function repeatedAsTimePasses(
  { callbacks, patienceMs }: Subject,
  { mchOrderNo }: Taken,
  passTime: NonNullable<ConformanceWorld['passTime']>,
): Promise<{ kept: boolean; seen: string }> {
  const first = await callbacks.wait(mchOrderNo, 1, patienceMs)
  if (first.length === 0) return { kept: false, seen: 'no callback came' }
  for (const [i, seconds] of INTERVALS.entries()) {
    const told = i + 1
    await passTime((seconds - LEEWAY_S) * 1000, mchOrderNo, told)
    const early = await callbacks.wait(mchOrderNo, told + 1, QUIET_MS)
    if (early.length > told) return { kept: false, seen: `try ${told + 1} came before ${seconds} s` }
    await passTime(LEEWAY_S * 1000, mchOrderNo, told)
    const due = await callbacks.wait(mchOrderNo, told + 1, patienceMs)
    if (due.length === told) return { kept: false, seen: `try ${told + 1} did not come after ${seconds} s` }
  }
  return { kept: true, seen: `after ${INTERVALS.join(', ')} s` }
}

/** Demands that callbacks came at the contract's intervals, each not before its time. */
export function keptIntervals(arrived: readonly Pick<Arrived, 'at'>[]): string {
  const found = intervalsOf(arrived)
  const kept = INTERVALS.every((wanted, i) => {
    const interval = found[i] ?? 0
    return interval >= wanted - 1 && interval <= wanted + LEEWAY_S
  })
  demand(kept, `it came again after ${found.join(', ') || 'no time'} s`)
  return `after ${found.join(', ')} s`
}

/** Whole seconds. */
const intervalsOf = (arrived: readonly Pick<Arrived, 'at'>[]): number[] =>
  arrived.slice(1).map(({ at }, i) => Math.round((at - (arrived[i]?.at ?? at)) / 1000))
