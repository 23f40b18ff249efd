import type { Case } from '../case.ts'
import { demand } from '../demand.ts'
import { refusesAll } from '../refusals.ts'
import { codeOf, misshapen, succeeded } from '../reply.ts'
import { WRONG } from '../wrong-values.ts'

/** Gateway contract, "Balance query". */
const PATHS = ['/api/agentpay/query_balance', '/api/agentpay/query_order'] as const

/** Gateway contract, "Balance query". */
export const balance: readonly Case[] = [
  {
    name: 'balance/record',
    about: 'a balance answer has busNo and five integers',
    async ask(subject) {
      const reply = await subject.ask('balance', subject.queryFields('balance'))
      demand(succeeded(reply), `answers ${codeOf(reply)}`)
      const faults = misshapen(reply, {
        retMsg: ['text', 'null', 'absent'],
        busNo: ['text'],
        amount: ['integer'],
        frozenAmount: ['integer'],
        availableAmount: ['integer'],
        pendingAmount: ['integer'],
        unsettledAmount: ['integer'],
      })
      demand(faults.length === 0, faults.join(', '))
      return 'every field'
    },
  },
  {
    name: 'balance/unsigned',
    about: 'the balance answer has no sign',
    async ask(subject) {
      const reply = await subject.ask('balance', subject.queryFields('balance'))
      demand(!reply.fields.has('sign'), `it is signed, and the signature is ${reply.sign}`)
      return 'no sign'
    },
  },
  {
    name: 'balance/req-time',
    about: 'reqTime must be given, written yyyyMMddHHmmss',
    ask: (subject) =>
      refusesAll(subject, 'balance', [
        ['no reqTime', subject.queryFields('balance', { reqTime: null })],
        ...WRONG.reqTime.map(
          (reqTime) => [`reqTime ${reqTime}`, subject.queryFields('balance', { reqTime })] as const,
        ),
      ]),
  },
  {
    name: 'balance/paths',
    about: 'which of the two paths in the contract return the balance',
    open: true,
    async ask(subject) {
      const said: string[] = []
      for (const path of PATHS) {
        said.push(`${path} ${codeOf(await subject.ask('balance', subject.queryFields('balance'), { path }))}`)
      }
      return said.join(', ')
    },
  },
  {
    name: 'balance/when-a-payout-is-taken',
    about: 'which of the five amounts change when a payout is accepted',
    open: true,
    async ask(subject) {
      const amounts = async () => (await subject.ask('balance', subject.queryFields('balance'))).fields
      const before = await amounts()
      await subject.newPayout()
      const after = await amounts()
      const moved = NAMES.filter((name) => before.get(name) !== after.get(name))
      return moved.length === 0 ? 'none' : moved.join(', ')
    },
  },
]

const NAMES = ['amount', 'frozenAmount', 'availableAmount', 'pendingAmount', 'unsettledAmount'] as const
