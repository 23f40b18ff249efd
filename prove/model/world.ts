import { RAMPED } from '../../src/dispatch/pace.ts'
import { formatRupees } from '../../src/payout/money.ts'
import { Clock } from './clock.ts'
import { Gateway, unanswered, type Verdict } from './gateway.ts'
import type { Command } from './intake.ts'
import { Ledger, type Message, NEW_PURSE, type Settings } from './ledger.ts'
import { type ApplyCall, type Call, type Fate, Network } from './network.ts'
import { Broken, Oracle } from './oracle.ts'
import type { Parts } from './parts.ts'
import { type Point, Process } from './process.ts'
import { RULES, type Rules } from './rules.ts'

export type Beginning = {
  duplicateApply: keyof typeof RULES
  processes: number
  /** The canary is over: many may be sent at once. */
  warm: boolean
}
export type Tell = (sentence: () => string) => void

/** One simulated payoutd with all that it has to do with. It is left only by way of the steps in steps.ts. */
export class World {
  readonly parts: Parts
  readonly rules: Rules
  readonly clock = new Clock()
  readonly ledger: Ledger
  readonly gateway: Gateway
  readonly network = new Network()
  /** `payout.commands`, by offset. */
  readonly topic: Command[] = []
  /** What came out of the relay, on whatever topic. */
  readonly published: Message[] = []
  processes: Process[] = []
  /** Of the next applies, one after the other. */
  readonly fates: Fate[] = []
  /** The next process that comes to this point is stopped there. */
  trap: { point: Point; by: 'crash' | 'freeze' } | null = null
  readonly #tell: Tell | null
  /** Looks at it after every step, and throws where something is wrong. */
  readonly #oracle = new Oracle(this)
  #started = 0

  constructor({ duplicateApply, processes, warm }: Beginning, parts: Parts, tell: Tell | null) {
    this.parts = parts
    this.rules = RULES[duplicateApply]
    this.#tell = tell
    this.ledger = new Ledger(warm ? RAMPED : 0, () => this.#oracle.check())
    this.gateway = new Gateway(this.rules)
    for (let i = 0; i < processes; i++) this.start('right')
  }

  /** Throws `Broken`. To be called after every step; commits are looked at by themselves. */
  check(): void {
    this.#oracle.check()
  }

  tell(sentence: () => string): void {
    this.#tell?.(() => `${this.clock.text().padStart(9)}  ${sentence()}`)
  }

  /** "P2 is processing", for sentences. */
  stands(payoutId: string): string {
    const payout = this.ledger.tables.payouts.get(payoutId)
    return payout ? `${payoutId} is ${payout.state}${payout.reason ? ` (${payout.reason})` : ''}` : payoutId
  }

  /** By whom an order is known here. */
  payoutOf(mchOrderNo: string): string {
    const payout = [...this.ledger.tables.payouts.values()].find(({ orderNo }) => orderNo === mchOrderNo)
    return payout?.payoutId ?? 'nobody'
  }

  start(settings: Settings): void {
    const process = new Process(String.fromCharCode(65 + this.#started++), settings, this)
    this.processes.push(process)
    const { tables } = this.ledger
    if (tables.settings === settings) return
    this.ledger.tables = { ...tables, settings, purse: { ...tables.purse, ...UNTRIED } }
  }

  /** The gateway takes a call from the network, and its answer is on the way back. */
  arrive(call: Call, verdict: Verdict, foundAfterMs: number): void {
    const { gateway, clock } = this
    switch (call.kind) {
      case 'apply': {
        this.#foresee(call)
        call.reply = gateway.apply(call.about, verdict, clock.now)
        const order = gateway.orders.at(-1)
        if (call.reply.kind === 'accepted' && order) order.findableFrom = clock.now + foundAfterMs
        const { reply, about } = call
        const slowly = reply.kind === 'accepted' && foundAfterMs > 0
        const from = slowly ? `, to be found from ${clock.text(clock.now + foundAfterMs)} on` : ''
        this.tell(() => `the gateway takes the apply for ${about.payoutId}: ${reply.kind}${from}`)
        return
      }
      case 'query': {
        const { elsewhere, mchOrderNo, payoutId } = call.about
        call.reply = elsewhere ? { kind: 'not-found', exchange: {} } : gateway.query(mchOrderNo, clock.now)
        const said = call.reply.kind === 'found' ? call.reply.report.status : call.reply.kind
        this.tell(() => `the gateway takes the query about ${payoutId}: ${said}`)
        return
      }
      case 'balance':
        call.reply = { available: gateway.available, unforeseen: gateway.unforeseen }
        return
    }
  }

  /** What an apply takes off the balance though the ledger has no such payout under way. */
  #foresee({ about }: ApplyCall): void {
    const state = this.ledger.tables.payouts.get(about.payoutId)?.state
    if (state !== 'submitting' && state !== 'unknown') this.gateway.unforeseen += about.amount
  }

  /** What was to become of an apply becomes of it. */
  #fulfil(call: ApplyCall): void {
    const { fate } = call.about
    if (call.reply === null && fate === 'connection refused') {
      call.reply = { kind: 'not-sent', reason: 'ECONNREFUSED', exchange: {} }
    }
    if (call.reply === null && fate !== 'lost on the way') {
      const slow = fate === 'not found for long'
      this.arrive(call, isVerdict(fate) ? fate : 'accept', slow ? this.rules.foundWithinMs : 0)
    }
    if (fate === 'answer garbled') call.reply = unanswered('unparsable')
    if (fate === 'answer lost' || fate === 'not found for long') call.reply = null
  }

  /** Whoever comes to the point that was chosen is stopped there. */
  reach(point: Point, process: Process): void {
    if (this.trap?.point !== point) return
    const { by } = this.trap
    this.trap = null
    if (by === 'freeze') this.freeze(process)
    else this.crash(process, 'right')
  }

  freeze(process: Process): void {
    process.frozen = true
    this.tell(() => `${process.name} is frozen`)
  }

  /** What it had in memory is gone; its calls may still arrive. Another one starts in its place. */
  crash(process: Process, settings: Settings): void {
    this.processes = this.processes.filter((each) => each !== process)
    this.start(settings)
    const heir = this.processes.at(-1)
    this.tell(() => `${process.name} crashes; ${heir?.name} starts with ${settings} settings`)
  }

  answer(call: Call): void {
    this.network.lose(call)
    call.answer = call.reply
  }

  /** Calls that were not taken in time never will be. */
  advance(ms: number): void {
    this.clock.now += ms
    for (const call of this.network.onTheWay) {
      if (this.clock.now > call.sentAt + this.rules.arrivesWithinMs) this.network.lose(call)
    }
  }

  /** One turn of everybody, and the gateway answers as it should. False: there was nothing to do. */
  goOn(): boolean {
    let moved = false
    for (const process of [...this.processes]) {
      for (const { run } of process.work()) {
        if (process.frozen || !this.processes.includes(process)) break
        run()
        moved = true
      }
    }
    for (const call of this.network.calls) {
      if (call.kind === 'apply') this.#fulfil(call)
      else if (call.reply === null) this.arrive(call, 'accept', 0)
      this.answer(call)
      moved = true
    }
    const { callbacks } = this.gateway
    const door = this.processes.find(({ frozen }) => !frozen)
    if (callbacks.length > 0 && door) {
      this.gateway.callbacks = []
      for (const report of callbacks) if (!door.hear(report)) this.gateway.callbacks.push(report)
      moved = true
    }
    return moved
  }

  /** All goes on until there is nothing left to do at this moment. */
  settle(): void {
    for (let turns = 0; this.goOn(); turns++) {
      this.check()
      if (turns === MOST_TURNS)
        throw new Broken('everything comes to rest', 'the same is done over and over again')
    }
  }

  /** Moves the clock on to when something happens by time alone. False: nothing ever will. */
  wait(): boolean {
    const wakes = this.processes.flatMap((process) => process.wakesAt()).filter((at) => at > this.clock.now)
    if (wakes.length > 0) this.advance(Math.min(...wakes) - this.clock.now)
    return wakes.length > 0
  }

  /** A lease is not cut short by a deadline, and neither is a query with its positive control. */
  get #slackMs(): number {
    return this.rules.leaseMs + 3 * this.rules.callMs
  }

  /**
   * Nobody is frozen, nothing fails any more, the gateway pays what it has, and time goes on until there is
   * nothing left to wait for. Throws `Broken` when that never comes, or when it is not as it should be.
   */
  rest(): void {
    this.tell(() => 'everything comes to rest')
    this.ledger.cut = null
    this.trap = null
    this.fates.length = 0
    for (const process of this.processes) process.frozen = false
    const began = this.clock.now
    do {
      this.settle()
      this.#oracle.checkDeadlines(began, this.clock.now - this.#slackMs)
      for (const order of this.gateway.orders.filter(({ status }) => status === 'processing')) {
        this.gateway.pay(order)
        this.tell(() => `the gateway pays ${this.payoutOf(order.mchOrderNo)}: ${formatRupees(order.amount)}`)
      }
      this.settle()
    } while (this.wait())
    this.#oracle.checkRest()
  }
}

const VERDICTS: readonly string[] = ['accept', 'pay at once', 'refuse', 'too fast', 'break down']
const isVerdict = (fate: Fate): fate is Verdict => VERDICTS.includes(fate)

/** At one moment. */
const MOST_TURNS = 40
const { available, ramp, badRun, circuitOpened, circuitOpenUntil, circuitReason } = NEW_PURSE
const UNTRIED = { available, ramp, badRun, circuitOpened, circuitOpenUntil, circuitReason }
