import type { Case } from '../case.ts'
import { demand } from '../demand.ts'
import { refusesAll } from '../refusals.ts'
import { codeOf, heldIn, misshapen, type Reply, type Shape, succeeded } from '../reply.ts'
import type { Subject, Taken } from '../subject.ts'
import { TOO_LONG, WRONG } from '../wrong-values.ts'

const SHAPE: Shape = {
  retCode: ['text'],
  mchOrderNo: ['text'],
  agentpayOrderId: ['text'],
  channelPayNo: ['text', 'null', 'absent'],
  amount: ['integer'],
  status: ['integer'],
  fee: ['integer'],
  errorMessage: ['text', 'null', 'absent'],
  notifyStatus: ['integer'],
}

/** Gateway contract, "Query payout order". */
const PATHS = ['/api/pay/orderquery', '/api/pay/query_order'] as const

/** Gateway contract, "Query payout order". */
export const payoutQuery: readonly Case[] = [
  {
    name: 'payout-query/by-merchant-number',
    about: 'a query by mchOrderNo finds a payout and returns all its fields, with a status from 0 to 3',
    async ask(subject) {
      const payout = await subject.payout()
      return told(await subject.query('payoutQuery', payout.mchOrderNo), payout)
    },
  },
  {
    name: 'payout-query/by-platform-number',
    about: 'a query by agentpayOrderId finds a payout and returns all its fields',
    async ask(subject) {
      const payout = await subject.payout()
      const asked = subject.queryFields('payoutQuery', { agentpayOrderId: payout.platformNo })
      return told(await subject.ask('payoutQuery', asked), payout)
    },
  },
  {
    name: 'payout-query/paths',
    about: 'which of the two paths in the contract find a payout',
    open: true,
    async ask(subject) {
      const { mchOrderNo } = await subject.payout()
      const said: string[] = []
      for (const path of PATHS) {
        const reply = await subject.ask('payoutQuery', subject.queryFields('payoutQuery', { mchOrderNo }), {
          path,
        })
        said.push(`${path} ${codeOf(reply)}`)
      }
      return said.join(', ')
    },
  },
  {
    name: 'payout-query/shared-path',
    about:
      'at the path that payins share, a query with reqTime is about a payout and one with executeNotify is not',
    async ask(subject) {
      const { payinQuery: path, payoutQuery } = subject.dialect.paths
      const { mchOrderNo } = await subject.payout()
      demand(!succeeded(await subject.query('payinQuery', mchOrderNo)), 'a payin query finds a payout')
      const payin = await subject.payin()
      const asked = subject.queryFields('payoutQuery', { mchOrderNo: payin.mchOrderNo })
      demand(!succeeded(await subject.ask('payoutQuery', asked, { path })), 'a payout query finds a payin')
      return path === payoutQuery ? 'told apart' : `payouts are queried at ${payoutQuery}`
    },
  },
  {
    name: 'payout-query/needs-a-number',
    about: 'mchOrderNo or agentpayOrderId must be given',
    ask: (subject) => refusesAll(subject, 'payoutQuery', [['neither', subject.queryFields('payoutQuery')]]),
  },
  {
    name: 'payout-query/req-time',
    about: 'reqTime must be given, written yyyyMMddHHmmss',
    async ask(subject) {
      const { mchOrderNo } = await subject.payout()
      const asked = (reqTime: string | null) => subject.queryFields('payoutQuery', { mchOrderNo, reqTime })
      return refusesAll(subject, 'payoutQuery', [
        ['no reqTime', asked(null)],
        ...WRONG.reqTime.map((value) => [`reqTime ${value}`, asked(value)] as const),
      ])
    },
  },
  {
    name: 'payout-query/number-length',
    about: 'mchOrderNo and agentpayOrderId are at most 30 characters',
    ask: (subject) =>
      refusesAll(subject, 'payoutQuery', [
        ['an mchOrderNo of 31 characters', subject.queryFields('payoutQuery', { mchOrderNo: TOO_LONG })],
        ['an agentpayOrderId of 31', subject.queryFields('payoutQuery', { agentpayOrderId: TOO_LONG })],
      ]),
  },
  {
    name: 'payout-query/absent',
    about: 'what the answer is for a payout that does not exist',
    open: true,
    ask: async (subject) => codeOf(await subject.query('payoutQuery', subject.newOrderNo())),
  },
  {
    name: 'payout-query/paid',
    about: 'a paid payout has status 2 and a UTR in channelPayNo',
    async ask(subject) {
      const reply = await ended(subject, await subject.payout())
      demand(reply.fields.get('status') === '2', `status is ${reply.fields.get('status')}`)
      demand(Boolean(reply.fields.get('channelPayNo')), 'no channelPayNo')
      return `notifyStatus ${reply.fields.get('notifyStatus')}, errorMessage ${heldIn(reply, 'errorMessage')}`
    },
  },
  {
    name: 'payout-query/failed',
    about: 'a failed payout has status 3 and an errorMessage',
    async ask(subject) {
      const reply = await ended(subject, await subject.failedPayout())
      demand(reply.fields.get('status') === '3', `status is ${reply.fields.get('status')}`)
      demand(Boolean(reply.fields.get('errorMessage')), 'no errorMessage')
      return `notifyStatus ${reply.fields.get('notifyStatus')}`
    },
  },
]

/** Waits for the callback that reports the end. */
async function ended(subject: Subject, payout: Taken): Promise<Reply> {
  const heard = await subject.callbacks.wait(payout.mchOrderNo, 1, subject.patienceMs)
  demand(heard.length > 0, 'no callback came')
  const reply = await subject.query('payoutQuery', payout.mchOrderNo)
  told(reply, payout)
  return reply
}

function told(reply: Reply, { mchOrderNo, platformNo }: Taken): string {
  demand(succeeded(reply), `answers ${codeOf(reply)}`)
  const faults = misshapen(reply, SHAPE)
  demand(faults.length === 0, faults.join(', '))
  demand(reply.fields.get('mchOrderNo') === mchOrderNo, 'it names another mchOrderNo')
  demand(reply.fields.get('agentpayOrderId') === platformNo, 'it names another agentpayOrderId')
  demand(reply.fields.get('amount') === '100', `amount is ${reply.fields.get('amount')}`)
  const status = reply.fields.get('status') ?? ''
  demand(/^[0-3]$/.test(status), `status is ${status}`)
  return `status ${status}`
}
