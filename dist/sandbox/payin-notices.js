import { Agenda } from "./agenda.js";
import { afterNotice, WAITING } from "./payin.js";
import { noticeFields } from "./payin-fields.js";
/** Tells merchants how their payins ended. Nothing is told before it is in the file. */
export class PayinNotices {
    #parts;
    #agenda;
    /** Payins with a callback of the schedule under way. */
    #underWay = new Set();
    #stopped = false;
    constructor(parts) {
        this.#parts = parts;
        this.#agenda = new Agenda(parts.clock, (due) => this.#afterCommit(() => {
            for (const id of due)
                this.#tell(id);
        }));
        for (const payin of parts.payins.open())
            this.schedule(payin);
    }
    /** Takes note of when the payin's next callback is due. */
    schedule({ id, callbackAt }) {
        if (callbackAt !== null)
            this.#agenda.add(callbackAt, id);
    }
    /** One callback more, at once and never repeated, about a payin that has ended. */
    tellOnceMore({ id, status }) {
        if (status !== WAITING)
            this.#afterCommit(() => this.#send(id, false));
    }
    /** Nothing more is sent; a callback that is under way is sent again at the next start. */
    stop() {
        this.#stopped = true;
        this.#agenda.stop();
    }
    #afterCommit(work) {
        // If the file cannot be written nothing may be said any more.
        void this.#parts.store.committed().then(work, () => undefined);
    }
    #tell(id) {
        const { payins, clock } = this.#parts;
        const { callbackAt = null } = payins.byId(id) ?? {};
        if (callbackAt === null || callbackAt > clock.now() || this.#underWay.has(id))
            return;
        this.#underWay.add(id);
        this.#send(id, true);
    }
    #send(id, scheduled) {
        const { payins, merchants, sender } = this.#parts;
        const payin = payins.byId(id);
        if (this.#stopped || !payin)
            return;
        const merchant = merchants.of(payin);
        const fields = noticeFields(payin, merchant.mchId, scheduled ? 'scheduled' : 'asked');
        const notice = { status: payin.status, scheduled };
        void sender.send(payin.notifyUrl, fields, { merchant, signed: 'well' }).then((delivery) => {
            if (!this.#stopped)
                this.#sent(id, notice, delivery);
        });
    }
    #sent(id, notice, delivery) {
        const { store, payins, deliveries, clock, retries } = this.#parts;
        const before = payins.byId(id);
        if (!before)
            return;
        const payin = afterNotice(before, notice, delivery.acknowledged, retries, clock.now());
        store.write(() => {
            payins.save(payin);
            deliveries.add(id, payin.callbacksSent, delivery);
        });
        if (!notice.scheduled)
            return;
        this.#underWay.delete(id);
        this.schedule(payin);
    }
}
