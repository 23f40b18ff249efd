import type { SharedSlots } from '../../platform/running/shared-slots.ts'

/** Dispatch claims a wave once this many slots are free, so that few payouts are in doubt after a crash. */
const REFILL = 16
const LARGEST_WAVE = 64
/**
 * Where many merchants have payouts to send, each sends so many at a time, and then others do: a claim of one payout, with its answer
 * and its callback, takes as many statements as a claim of several.
 */
const LEAST_SHARE = 8
/**
 * While others keep so many slots that there is no room for a wave, a merchant without a call may make one, if need be beyond the
 * slots, because calls of a gateway that hangs keep theirs for long. So many begin at a time; one that takes longer than this no
 * longer counts, so that hanging ones keep nobody waiting.
 */
const MOST_SINGLES = 16
const SINGLE_MS = 250

/** What counts of a merchant with payouts to send. */
export type Claimant = {
  claiming: boolean
  /** Unless its last claim took nothing. Otherwise the merchant uses only slots of its own, and has no part in the share. */
  takes: boolean
  /** When its last claim began, if there was no room for more than one call. */
  singleAt: number | null
}

/** Divides the slots of applies among merchants: how many payouts the next claim of each may take. */
export class ClaimRoom {
  readonly #slots: SharedSlots
  readonly #size: number
  /** Whether calls of the merchant are under way, or their answers not stored yet. */
  readonly #isSending: (merchantId: string) => boolean
  /** The most slots of one merchant, while others send, too. */
  #share = 0
  /** Merchants that have just begun a single call for want of room. */
  #singles = 0

  constructor(slots: SharedSlots, size: number, isSending: (merchantId: string) => boolean) {
    this.#slots = slots
    this.#size = size
    this.#isSending = isSending
  }

  /** Divides anew among these merchants. */
  divide(claimants: ReadonlyMap<string, Claimant>, now: number): void {
    const sharing = [...claimants].filter(([merchantId, { takes }]) => takes || this.#isSending(merchantId))
    this.#share = Math.max(LEAST_SHARE, Math.ceil(this.#size / Math.max(1, sharing.length)))
    this.#singles = sharing.filter(
      ([merchantId, { singleAt, claiming }]) =>
        singleAt !== null && (claiming || (this.#isSending(merchantId) && singleAt > now - SINGLE_MS)),
    ).length
  }

  /** 0: so few that the merchant waits for more. */
  of(merchantId: string, { takes, claiming, singleAt }: Claimant): number {
    const held = this.#slots.held(merchantId)
    const room = Math.min(this.#slots.roomWithin(merchantId), this.#share - held)
    if (!takes)
      return Math.min(Math.max(room, held === 0 ? 1 : 0), Math.max(1, this.#slots.ownRoom(merchantId)))
    if (room >= this.#least(held, room)) return Math.min(room, LARGEST_WAVE)
    const maySingle = claiming ? singleAt !== null : this.#singles < MOST_SINGLES
    return held === 0 && maySingle ? 1 : 0
  }

  #least(held: number, room: number): number {
    if (held > 0) return Math.min(REFILL, Math.ceil((held + room) / 2))
    return Math.min(REFILL, Math.ceil(Math.min(this.#share, this.#size) / 2), this.#slots.own || REFILL)
  }

  /** Call it when a claim that may take so many is about to begin. */
  begin(claimant: Claimant, atMost: number, now: number): void {
    claimant.singleAt = claimant.takes && atMost === 1 ? now : null
    if (claimant.singleAt !== null) this.#singles++
  }
}
