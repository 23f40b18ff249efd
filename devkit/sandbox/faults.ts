import { z } from 'zod'

const QUESTIONS = [
  'apply',
  'queryPayout',
  'queryBalance',
  'createPayin',
  'queryPayin',
  'recoverPayin',
] as const
const CALLBACKS = ['payoutCallback', 'payinCallback'] as const

/** What a fault may strike: a call to an operation of the contract, or a callback. */
export type Struck = (typeof QUESTIONS)[number] | (typeof CALLBACKS)[number]

/** Which calls it strikes: the next so many, or this share of all, drawn from `seed`. */
const on = {
  next: z.int().positive().optional(),
  percent: z.number().positive().max(100).optional(),
  seed: z
    .int()
    .min(0)
    .max(2 ** 32 - 1)
    .default(1),
  /** Strikes only this merchant's calls and callbacks; every merchant's by default. */
  mchId: z.string().optional(),
}
const question = { ...on, operation: z.enum(QUESTIONS) }
const callback = { ...on, operation: z.enum(CALLBACKS) }
const either = { ...on, operation: z.enum([...QUESTIONS, ...CALLBACKS]) }
const DAY_MS = 86_400_000
/** Whether the operation is done anyway. */
const done = z.boolean().default(true)

/** A fault as requested over HTTP. */
export const faultJson = z
  .discriminatedUnion('fault', [
    z.strictObject({ fault: z.literal('delay'), ...question, delayMs: z.int().positive().max(600_000) }),
    z.strictObject({ fault: z.literal('hang'), ...question, done }),
    z.strictObject({ fault: z.literal('reset'), ...question, done }),
    z.strictObject({ fault: z.literal('500'), ...question, done }),
    z.strictObject({ fault: z.literal('garbage'), ...question, done }),
    z.strictObject({ fault: z.literal('unsigned'), ...either }),
    z.strictObject({ fault: z.literal('wrongly-signed'), ...either }),
    z.strictObject({
      fault: z.literal('clock-shift'),
      ...either,
      shiftMs: z.int().min(-DAY_MS).max(DAY_MS),
    }),
    z.strictObject({
      fault: z.literal('not-found'),
      ...on,
      operation: z.enum(['queryPayout', 'queryPayin']),
      /** Order numbers, of either side, that are found anyway. */
      except: z.array(z.string()).max(10_000).default([]),
    }),
    z.strictObject({
      fault: z.literal('denied'),
      ...on,
      operation: z.literal('apply'),
      retCode: z.string().regex(/^\w{1,32}$/),
    }),
    z.strictObject({ fault: z.literal('contradictory'), ...on, operation: z.literal('queryPayout') }),
    z.strictObject({ fault: z.literal('lost-callback'), ...callback }),
    z.strictObject({ fault: z.literal('duplicate-callback'), ...callback }),
    z.strictObject({ fault: z.literal('out-of-order-callback'), ...callback }),
    z.strictObject({ fault: z.literal('contradictory-callback'), ...callback }),
  ])
  .refine(({ next, percent }) => (next === undefined) !== (percent === undefined), {
    message: 'exactly one of next and percent is required',
    path: ['next'],
  })

export type Fault = z.output<typeof faultJson>

type Active = { fault: Fault; left: number; struck: number; random: () => number }

/** The pending faults, in the order of the requests. A restart clears them. */
export class Faults {
  #active: Active[] = []

  add(fault: Fault): void {
    this.#active.push({ fault, left: fault.next ?? Infinity, struck: 0, random: draws(fault.seed) })
  }

  /** The faults that may still strike. `next` is how many calls are left, `struck` how many it has struck. */
  list(): (Fault & { struck: number })[] {
    return this.#active.map(({ fault, left, struck }) => ({
      ...fault,
      ...(fault.next === undefined ? {} : { next: left }),
      struck,
    }))
  }

  clear(): void {
    this.#active = []
  }

  /** The first fault that strikes this merchant's call or callback about the order of that number. */
  strike(operation: Struck, mchId: string, order = ''): Fault | undefined {
    if (this.#active.length === 0) return undefined
    const hit = this.#active.find(
      ({ fault, random }) =>
        fault.operation === operation &&
        (fault.mchId ?? mchId) === mchId &&
        !('except' in fault && fault.except.includes(order)) &&
        (fault.percent === undefined || random() * 100 < fault.percent),
    )
    if (!hit) return undefined
    hit.struck += 1
    hit.left -= 1
    if (hit.left === 0) this.#active = this.#active.filter((each) => each !== hit)
    return hit.fault
  }
}

/** Numbers from 0 up to 1, exclusive; the same for the same seed (mulberry32). */
function draws(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
