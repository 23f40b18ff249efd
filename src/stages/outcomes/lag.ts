import type { Logger } from '../../platform/log.ts'
import { isWithoutAnswer } from '../../platform/postgres/faults.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { shareOf } from '../../platform/postgres/shares.ts'
import { reportLag } from './sql/lag.ts'

const EVERY_MS = 500
const WORTH_REPORTING_MS = 100

export type LagReportDeps = {
  /** By merchant, the longest wait of a callback, in ms. */
  endpoint: { slowestMs(): ReadonlyMap<string, number> }
  db: Database
  processId: string
  log: Logger
}

/** Reports to dispatch, each merchant by itself, how far this process is behind with its callbacks. */
export class LagReport {
  readonly #deps: LagReportDeps
  #reported = new Set<string>()

  constructor(deps: LagReportDeps) {
    this.#deps = deps
  }

  /** Returns how many ms to wait before the next turn. */
  async turn(): Promise<number> {
    const behind = new Map(
      [...this.#deps.endpoint.slowestMs()].filter(([, lagMs]) => lagMs >= WORTH_REPORTING_MS),
    )
    const merchantIds = [...new Set([...this.#reported, ...behind.keys()])]
    await Promise.all(merchantIds.map((merchantId) => this.#report(merchantId, behind.get(merchantId) ?? 0)))
    return EVERY_MS
  }

  /** If a report fails, the next turn repeats it. That the database is away is told once, and not here. */
  async #report(merchantId: string, lagMs: number): Promise<void> {
    const { db, processId, log } = this.#deps
    try {
      await shareOf(db, merchantId).write('report lag', reportLag, { processId, merchantId, lagMs })
      if (lagMs === 0) this.#reported.delete(merchantId)
      else this.#reported.add(merchantId)
    } catch (error) {
      this.#reported.add(merchantId)
      if (isWithoutAnswer(error)) return
      log.error({ err: error, merchantId }, 'cannot measure how far callbacks of this merchant are behind')
    }
  }
}
