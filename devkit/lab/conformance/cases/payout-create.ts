import type { Case } from '../case.ts'
import { demand } from '../demand.ts'
import { takesNone, withEach, without } from '../refusals.ts'
import { codeOf, misshapen, succeeded } from '../reply.ts'
import { WRONG } from '../wrong-values.ts'
import { payoutFieldRules } from './field-rules.ts'

/** Gateway contract, "Create payout order". */
export const payoutCreate: readonly Case[] = [
  {
    name: 'payout-create/taken',
    about:
      'a payout with what is required is answered SUCCESS, agentpayOrderId, fee, extra null and status 1',
    async ask(subject) {
      const reply = await subject.ask('apply', subject.payoutFields())
      demand(succeeded(reply), `refused with ${codeOf(reply)}`)
      const faults = misshapen(reply, {
        retMsg: ['text', 'null'],
        agentpayOrderId: ['text'],
        fee: ['integer'],
        extra: ['null', 'absent'],
        status: ['integer'],
      })
      demand(faults.length === 0, faults.join(', '))
      demand(reply.fields.get('status') === '1', `status is ${reply.fields.get('status')}`)
      return `agentpayOrderId like ${reply.fields.get('agentpayOrderId')}, fee ${reply.fields.get('fee')} paise`
    },
  },
  {
    name: 'payout-create/extra',
    about: 'extra is a text that holds a JSON object with the one key value: an IFSC or a VPA',
    async ask(subject) {
      for (const value of subject.beneficiary.values) {
        await subject.newPayout({ extra: JSON.stringify({ value }) })
      }
      return takesNone(subject, 'apply', withEach('extra', WRONG.extra))
    },
  },
  {
    name: 'payout-create/optional',
    about: 'phoneNumber, payerEmail and remark may be given, and accountName left out',
    async ask(subject) {
      await subject.newPayout({ phoneNumber: '9876501234', payerEmail: 'asha@example.in', remark: 'Wages' })
      await subject.newPayout({ accountName: null })
      return 'taken'
    },
  },
  {
    name: 'payout-create/required',
    about: 'mchOrderNo, amount, currency, accountNo, accountBankCode, notifyUrl and extra must be given',
    ask: (subject) =>
      takesNone(
        subject,
        'apply',
        without('mchOrderNo', 'amount', 'currency', 'accountNo', 'accountBankCode', 'notifyUrl', 'extra'),
      ),
  },
  ...payoutFieldRules,
  {
    name: 'payout-create/duplicate',
    about: 'what becomes of a second payout with the same mchOrderNo',
    open: true,
    async ask(subject) {
      const { mchOrderNo } = await subject.payout()
      const again = codeOf(await subject.ask('apply', subject.payoutFields({ mchOrderNo })))
      return again === 'SUCCESS' ? 'SUCCESS: it may be paid twice' : again
    },
  },
]
