import type { Case } from '../case.ts'
import { demand } from '../demand.ts'
import { takesNone, without } from '../refusals.ts'
import { codeOf, misshapen, succeeded } from '../reply.ts'
import type { Subject } from '../subject.ts'
import { payinFieldRules } from './field-rules.ts'

/** Gateway contract, "Create payin order". */
export const payinCreate: readonly Case[] = [
  {
    name: 'payin-create/taken',
    about: 'a payin with what is required is answered SUCCESS, retMsg, payOrderId and payParams',
    async ask(subject) {
      const reply = await subject.ask('payinCreate', subject.payinFields())
      demand(succeeded(reply), `refused with ${codeOf(reply)}`)
      const faults = misshapen(reply, {
        retCode: ['text'],
        retMsg: ['text', 'null'],
        payOrderId: ['text'],
        payParams: ['object'],
      })
      demand(faults.length === 0, faults.join(', '))
      return `payOrderId like ${reply.fields.get('payOrderId')}`
    },
  },
  {
    name: 'payin-create/pay-params',
    about: 'payParams holds payMethod, payUrl, upi, and at least one of qrString and url',
    async ask(subject) {
      const given = await payParamsOf(subject)
      for (const name of ['payMethod', 'payUrl', 'upi']) {
        demand(typeof given[name] === 'string', `${name} is no text`)
      }
      demand(typeof given.qrString === 'string' || typeof given.url === 'string', 'neither qrString nor url')
      demand(given.url === null || given.url === undefined || typeof given.url === 'string', 'url is no text')
      return Object.keys(given).join(', ')
    },
  },
  {
    name: 'payin-create/pay-method',
    about: 'which payMethod it is',
    open: true,
    ask: async (subject) => String((await payParamsOf(subject)).payMethod),
  },
  {
    name: 'payin-create/no-status',
    about: 'creating says nothing of a payment: the answer has no status',
    async ask(subject) {
      const { reply } = await subject.payin()
      demand(!reply.fields.has('status'), 'the answer has a status')
      return 'no status'
    },
  },
  {
    name: 'payin-create/optional',
    about: 'phoneNumber, payerEmail, accountName, remark and returnUrl may be given',
    async ask(subject) {
      await subject.payin()
      const reply = await subject.ask('payinCreate', {
        ...subject.payinFields({ phoneNumber: '9876501234', payerEmail: 'dev.nair@example.in' }),
        ...{ accountName: 'Dev Nair', remark: 'Order 7', returnUrl: 'https://shop.example.in/thanks' },
      })
      demand(succeeded(reply), `refused with ${codeOf(reply)}`)
      return 'taken'
    },
  },
  {
    name: 'payin-create/required',
    about: 'mchOrderNo, amount, currency and notifyUrl must be given',
    ask: (subject) =>
      takesNone(subject, 'payinCreate', without('mchOrderNo', 'amount', 'currency', 'notifyUrl')),
  },
  ...payinFieldRules,
  {
    name: 'payin-create/currency',
    about: 'what becomes of a currency other than INR',
    open: true,
    async ask(subject) {
      await subject.payin()
      return codeOf(await subject.ask('payinCreate', subject.payinFields({ currency: 'USD' })))
    },
  },
  {
    name: 'payin-create/duplicate',
    about: 'what becomes of a second payin with the same mchOrderNo',
    open: true,
    async ask(subject) {
      const { mchOrderNo } = await subject.payin()
      return codeOf(await subject.ask('payinCreate', subject.payinFields({ mchOrderNo })))
    },
  },
]

async function payParamsOf(subject: Subject): Promise<Record<string, unknown>> {
  const { reply } = await subject.payin()
  demand(reply.types.get('payParams') === 'object', 'payParams is no object')
  return JSON.parse(reply.fields.get('payParams') ?? '{}')
}
