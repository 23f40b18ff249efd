import assert from 'node:assert/strict'
import { ABSENT } from '../../../../test/lost-ledger.ts'
import { CURRENT, FORMER } from '../../../../test/two-accounts.ts'
import type { OrderReport } from '../../../domain/evidence.ts'
import type { QueryAnswer } from '../../../domain/gateway-answers.ts'
import { reported } from '../set-back.fixture.ts'

export type StoryAccount = typeof CURRENT

/**
 * An order of `p` that the gateway accepted. `isReturned`: it was paid, and the money came back; `isUnheard`: no ledger could hear
 * how it ended, because that came after the recovery and its callback was lost.
 */
export type StoryOrder = {
  id: string
  account: StoryAccount
  status: 'processing' | 'success' | 'failed'
  isReturned: boolean
  isUnheard: boolean
}

export const otherThan = (account: StoryAccount): StoryAccount => (account === CURRENT ? FORMER : CURRENT)

/** What the gateway knows of `p` at two accounts of its merchant, whatever the ledgers know. */
export class StoryGateway {
  readonly orders: StoryOrder[] = []
  readonly refusesDuplicates: boolean

  constructor(refusesDuplicates: boolean) {
    this.refusesDuplicates = refusesDuplicates
  }

  /** Null: the account has an order of it and refuses another one. */
  accept(account: StoryAccount): StoryOrder | null {
    if (this.refusesDuplicates && this.orders.some((order) => order.account === account)) return null
    const order: StoryOrder = {
      ...{
        id: `AP${this.orders.length + 1}`,
        account,
        status: 'processing',
        isReturned: false,
        isUnheard: false,
      },
    }
    this.orders.push(order)
    return order
  }

  with(status: StoryOrder['status']): StoryOrder[] {
    return this.orders.filter((order) => order.status === status)
  }

  /** Under way or paid. */
  alive(): StoryOrder[] {
    return this.orders.filter(({ status }) => status !== 'failed')
  }

  /** An attempt at this account may be paid besides one of these. */
  paidBesides(account: StoryAccount): StoryOrder[] {
    return this.alive().filter((order) => order.account !== account || !this.refusesDuplicates)
  }

  /** To a query; of several orders the one that is worst to miss. */
  answer({ accountId }: StoryAccount): QueryAnswer {
    const last = (status: StoryOrder['status']) =>
      this.with(status).findLast((order) => order.account.accountId === accountId)
    const order = last('success') ?? last('processing') ?? last('failed')
    return order ? { kind: 'found', report: reportOn(order) } : ABSENT
  }

  /** Each order in words. */
  inWords(): string {
    return this.orders.map(orderInWords).join(', ') || 'no order'
  }
}

const WORDS = { processing: 'under way', success: 'paid', failed: 'failed' }

export const orderInWords = ({ id, status, account, isReturned }: StoryOrder): string =>
  `${id} is ${isReturned ? 'returned' : WORDS[status]} at ${account.accountId}`

export const utrOf = ({ id }: StoryOrder): string => `63261120000${id.slice(2)}`

export function reportOn(order: StoryOrder): OrderReport {
  const utr = order.status === 'success' || order.isReturned ? utrOf(order) : null
  const answer = reported({ agentpayOrderId: order.id, status: order.status, utr })
  return answer.kind === 'found' ? answer.report : assert.fail()
}
