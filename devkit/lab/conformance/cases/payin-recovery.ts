import type { Case } from '../case.ts'
import { demand } from '../demand.ts'
import { refusesAll } from '../refusals.ts'
import { codeOf, misshapen, succeeded } from '../reply.ts'
import { TOO_LONG } from '../wrong-values.ts'

/** Has the form of a UPI UTR, but belongs to no payment. */
const NOBODYS_UTR = '000000000000'

/** Gateway contract, "UTR recovery for a payin order". */
export const payinRecovery: readonly Case[] = [
  {
    name: 'payin-recovery/submitted',
    about:
      'a recovery is answered SUCCESS, signed, mchOrderNo, the platform’s number in agentpayOrderId, and extra null',
    async ask(subject) {
      const { reply, mchOrderNo, platformNo } = await subject.recoveredPayin()
      demand(succeeded(reply), `refused with ${codeOf(reply)}`)
      demand(reply.sign === 'good', `its signature: ${reply.sign}`)
      const faults = misshapen(reply, {
        retMsg: ['text', 'null'],
        errorMessage: ['text', 'null', 'absent'],
        extra: ['null', 'absent'],
      })
      demand(faults.length === 0, faults.join(', '))
      demand(reply.fields.get('mchOrderNo') === mchOrderNo, 'it names another mchOrderNo')
      demand(reply.fields.get('agentpayOrderId') === platformNo, 'agentpayOrderId is not the payOrderId')
      return 'submitted'
    },
  },
  {
    name: 'payin-recovery/outcome',
    about: 'what the payin is after a recovery was submitted',
    open: true,
    async ask(subject) {
      const { mchOrderNo, utr } = await subject.recoveredPayin()
      const { fields } = await subject.query('payinQuery', mchOrderNo)
      return `status ${fields.get('status')}, ${fields.get('channelPayNo') === utr ? 'with' : 'without'} the UTR`
    },
  },
  {
    name: 'payin-recovery/used-utr',
    about: 'what the answer is to a UTR that another payin has',
    open: true,
    async ask(subject) {
      const { utr } = await subject.recoveredPayin()
      const { platformNo } = await subject.payin()
      return codeOf(await subject.ask('payinRecovery', subject.recoveryFields(platformNo, utr)))
    },
  },
  {
    name: 'payin-recovery/unknown-utr',
    about: 'what the answer is to a UTR that no payment has',
    open: true,
    async ask(subject) {
      const { platformNo } = await subject.payin()
      return codeOf(await subject.ask('payinRecovery', subject.recoveryFields(platformNo, NOBODYS_UTR)))
    },
  },
  {
    name: 'payin-recovery/required',
    about: 'payOrderId and channelPayNo must be given',
    async ask(subject) {
      const good = subject.recoveryFields((await subject.payin()).platformNo, NOBODYS_UTR)
      return refusesAll(subject, 'payinRecovery', [
        ['no payOrderId', { ...good, payOrderId: null }],
        ['no channelPayNo', { ...good, channelPayNo: null }],
      ])
    },
  },
  {
    name: 'payin-recovery/number-length',
    about: 'payOrderId and channelPayNo are at most 30 characters',
    async ask(subject) {
      const { platformNo } = await subject.payin()
      return refusesAll(subject, 'payinRecovery', [
        ['a payOrderId of 31 characters', subject.recoveryFields(TOO_LONG, NOBODYS_UTR)],
        ['a channelPayNo of 31 characters', subject.recoveryFields(platformNo, TOO_LONG)],
      ])
    },
  },
]
