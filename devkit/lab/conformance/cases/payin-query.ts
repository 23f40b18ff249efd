import type { Case } from '../case.ts'
import { demand } from '../demand.ts'
import { refusesAll } from '../refusals.ts'
import { codeOf, heldIn, misshapen, type Reply, type Shape, succeeded } from '../reply.ts'
import type { Taken } from '../subject.ts'
import { TOO_LONG, WRONG } from '../wrong-values.ts'

const SHAPE: Shape = {
  retCode: ['text'],
  retMsg: ['text', 'null', 'absent'],
  status: ['integer'],
  productId: ['text', 'null', 'absent'],
  amount: ['integer'],
  channelPayNo: ['text', 'null', 'absent'],
  currency: ['text'],
  mchOrderNo: ['text'],
  payOrderId: ['text'],
  voucherMap: ['object', 'null', 'absent'],
  errorMessage: ['text', 'null', 'absent'],
  paySuccTime: ['integer', 'null', 'absent'],
  notifyStatus: ['integer'],
}

/** A callback that nobody requested would have arrived by then. */
const QUIET_MS = 1_000

/** Gateway contract, "Query payin order". */
export const payinQuery: readonly Case[] = [
  {
    name: 'payin-query/by-merchant-number',
    about: 'a query by mchOrderNo finds a payin and returns all its fields',
    async ask(subject) {
      const payin = await subject.payin()
      return told(await subject.query('payinQuery', payin.mchOrderNo), payin)
    },
  },
  {
    name: 'payin-query/by-platform-number',
    about: 'a query by payOrderId finds a payin and returns all its fields',
    async ask(subject) {
      const payin = await subject.payin()
      const asked = subject.queryFields('payinQuery', { payOrderId: payin.platformNo })
      return told(await subject.ask('payinQuery', asked), payin)
    },
  },
  {
    name: 'payin-query/needs-a-number',
    about: 'payOrderId or mchOrderNo must be given',
    ask: (subject) => refusesAll(subject, 'payinQuery', [['neither', subject.queryFields('payinQuery')]]),
  },
  {
    name: 'payin-query/execute-notify',
    about: 'executeNotify must be given, as true or false',
    async ask(subject) {
      const { mchOrderNo } = await subject.payin()
      const asked = (executeNotify: string | null) =>
        subject.queryFields('payinQuery', { mchOrderNo, executeNotify })
      return refusesAll(subject, 'payinQuery', [
        ['no executeNotify', asked(null)],
        ...WRONG.executeNotify.map((value) => [`executeNotify ${value}`, asked(value)] as const),
      ])
    },
  },
  {
    name: 'payin-query/number-length',
    about: 'payOrderId and mchOrderNo are at most 30 characters',
    ask: (subject) =>
      refusesAll(subject, 'payinQuery', [
        ['an mchOrderNo of 31 characters', subject.queryFields('payinQuery', { mchOrderNo: TOO_LONG })],
        ['a payOrderId of 31 characters', subject.queryFields('payinQuery', { payOrderId: TOO_LONG })],
      ]),
  },
  {
    name: 'payin-query/absent',
    about: 'what the answer is for a payin that does not exist',
    open: true,
    ask: async (subject) => codeOf(await subject.query('payinQuery', subject.newOrderNo())),
  },
  {
    name: 'payin-query/unpaid',
    about: 'status, productId, notifyStatus, voucherMap and errorMessage of a payin that nobody has paid',
    open: true,
    async ask(subject) {
      const reply = await subject.query('payinQuery', (await subject.payin()).mchOrderNo)
      return `${features(reply)}, errorMessage ${heldIn(reply, 'errorMessage')}`
    },
  },
  {
    name: 'payin-query/paid',
    about: 'a paid payin has status 2, a UTR in channelPayNo and paySuccTime in milliseconds',
    async ask(subject) {
      const payin = await subject.paidPayin()
      const reply = await subject.query('payinQuery', payin.mchOrderNo)
      told(reply, payin)
      const { fields } = reply
      demand(fields.get('status') === '2', `status is ${fields.get('status')}`)
      demand(Boolean(fields.get('channelPayNo')), 'no channelPayNo')
      demand(/^\d{13}$/.test(fields.get('paySuccTime') ?? ''), 'paySuccTime is not in milliseconds')
      return features(reply)
    },
  },
  {
    name: 'payin-query/failed',
    about: 'a failed payin has status 3 and an errorMessage',
    async ask(subject) {
      const payin = await subject.declinedPayin()
      const reply = await subject.query('payinQuery', payin.mchOrderNo)
      told(reply, payin)
      demand(reply.fields.get('status') === '3', `status is ${reply.fields.get('status')}`)
      demand(Boolean(reply.fields.get('errorMessage')), 'no errorMessage')
      return features(reply)
    },
  },
  {
    name: 'payin-query/notify-again',
    about: 'executeNotify true sends the callback once more, false does not',
    async ask(subject) {
      const { mchOrderNo } = await subject.paidPayin()
      const first = await subject.callbacks.wait(mchOrderNo, 1, subject.patienceMs)
      demand(first.length === 1, `${first.length} callbacks before it was asked for`)
      await subject.query('payinQuery', mchOrderNo)
      const unasked = await subject.callbacks.wait(mchOrderNo, 2, Math.min(QUIET_MS, subject.patienceMs))
      demand(unasked.length === 1, 'one more after a query with executeNotify false')
      await subject.query('payinQuery', mchOrderNo, { executeNotify: true })
      const asked = await subject.callbacks.wait(mchOrderNo, 2, subject.patienceMs)
      demand(asked.length === 2, 'none after a query with executeNotify true')
      return 'one more when it was asked for'
    },
  },
]

function told(reply: Reply, { mchOrderNo, platformNo }: Taken): string {
  demand(succeeded(reply), `answers ${codeOf(reply)}`)
  const faults = misshapen(reply, SHAPE)
  demand(faults.length === 0, faults.join(', '))
  demand(reply.fields.get('mchOrderNo') === mchOrderNo, 'it names another mchOrderNo')
  demand(reply.fields.get('payOrderId') === platformNo, 'it names another payOrderId')
  demand(reply.fields.get('amount') === '100', `amount is ${reply.fields.get('amount')}`)
  return 'every field'
}

/** Shows only the names in voucherMap: it may contain a payer's address. */
function features({ fields, types }: Reply): string {
  const names =
    types.get('voucherMap') === 'object' ? Object.keys(JSON.parse(fields.get('voucherMap') ?? '{}')) : []
  const told = ['status', 'productId', 'notifyStatus'].map(
    (name) => `${name} ${fields.get(name) ?? 'absent'}`,
  )
  return [...told, `voucherMap of ${names.join(' and ') || 'nothing'}`].join(', ')
}
