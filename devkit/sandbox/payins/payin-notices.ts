import type { DrivenClock } from '../driven-clock.ts'
import { Scheduler } from '../scheduler.ts'
import type { Merchants } from '../state/merchants.ts'
import type { Store } from '../state/store.ts'
import type { Pauses } from '../state/terms.ts'
import type { CallbackSender } from '../wire/callbacks.ts'
import type { Deliveries, Delivery } from '../wire/deliveries.ts'
import { afterNotice, type Notice, type Payin, WAITING } from './payin.ts'
import { noticeFields } from './payin-fields.ts'
import type { PayinRecords } from './payin-records.ts'

type NoticeParts = {
  store: Store
  payins: PayinRecords
  deliveries: Deliveries
  merchants: Merchants
  sender: Pick<CallbackSender, 'send'>
  clock: DrivenClock
  retries: Pauses
}

/** Calls merchants back about the end of their payins. It reports nothing before it is in the file. */
export class PayinNotices {
  readonly #parts: NoticeParts
  readonly #scheduler: Scheduler<number>
  /** Payins whose scheduled callback is being sent. */
  readonly #underWay = new Set<number>()
  #stopped = false

  constructor(parts: NoticeParts) {
    this.#parts = parts
    this.#scheduler = new Scheduler(parts.clock, (due) =>
      this.#afterCommit(() => {
        for (const id of due) this.#tell(id)
      }),
    )
    for (const payin of parts.payins.open()) this.schedule(payin)
  }

  /** Records when the payin's next callback is due. */
  schedule({ id, callbackAt }: Payin): void {
    if (callbackAt !== null) this.#scheduler.add(callbackAt, id)
  }

  /** Sends one more callback about an ended payin, at once and without repeats. */
  tellOnceMore({ id, status }: Payin): void {
    if (status !== WAITING) this.#afterCommit(() => this.#send(id, false))
  }

  /** Sends nothing more; the next start repeats a callback that is being sent now. */
  stop(): void {
    this.#stopped = true
    this.#scheduler.stop()
  }

  #afterCommit(work: () => void): void {
    // If the file cannot be written, nothing more may be sent.
    void this.#parts.store.committed().then(work, () => undefined)
  }

  #tell(id: number): void {
    const { payins, clock } = this.#parts
    const { callbackAt = null } = payins.byId(id) ?? {}
    if (callbackAt === null || callbackAt > clock.now() || this.#underWay.has(id)) return
    this.#underWay.add(id)
    this.#send(id, true)
  }

  #send(id: number, scheduled: boolean): void {
    const { payins, merchants, sender } = this.#parts
    const payin = payins.byId(id)
    if (this.#stopped || !payin) return
    const merchant = merchants.of(payin)
    const fields = noticeFields(payin, merchant.mchId, scheduled ? 'scheduled' : 'asked')
    const notice = { status: payin.status, scheduled }
    void sender.send(payin.notifyUrl, fields, { merchant, signed: 'well' }).then((delivery) => {
      if (!this.#stopped) this.#sent(id, notice, delivery)
    })
  }

  #sent(id: number, notice: Notice, delivery: Delivery): void {
    const { store, payins, deliveries, clock, retries } = this.#parts
    const before = payins.byId(id)
    if (!before) return
    const payin = afterNotice(before, notice, delivery.acknowledged, retries, clock.now())
    store.write(() => {
      payins.save(payin)
      deliveries.add(id, payin.callbacksSent, delivery)
    })
    if (!notice.scheduled) return
    this.#underWay.delete(id)
    this.schedule(payin)
  }
}
