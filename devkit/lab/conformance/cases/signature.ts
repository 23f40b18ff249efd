import type { Case } from '../case.ts'
import { demand } from '../demand.ts'
import { codeOf, type Reply, succeeded } from '../reply.ts'
import type { Given, Operation, Subject } from '../subject.ts'

/** Gateway contract, "Authentication" and "General conventions". */
export const signature: readonly Case[] = [
  {
    name: 'sign/wrong',
    about: 'a request whose signature is wrong is refused, in every operation',
    ask: (subject) => turnedAway(subject, 'wrong'),
  },
  {
    name: 'sign/missing',
    about: 'a request without a signature is refused, in every operation',
    ask: (subject) => turnedAway(subject, 'none'),
  },
  {
    name: 'sign/merchant',
    about: 'a request without mchId, or with another merchant’s, is refused, in every operation',
    async ask(subject) {
      const codes = new Set<string>()
      for (const [operation, given] of await oneOfEach(subject)) {
        for (const mchId of [null, `${given.mchId}0`]) {
          const reply = await subject.ask(operation, { ...given, mchId })
          demand(!succeeded(reply), `${operation} takes ${mchId === null ? 'no' : 'another'} mchId`)
          codes.add(codeOf(reply))
        }
      }
      return `refused: ${[...codes].join(', ')}`
    },
  },
  {
    name: 'sign/answers',
    about: 'every SUCCESS but the balance’s is signed, by the same rules as requests',
    async ask(subject) {
      const { mchOrderNo, reply } = await subject.payin()
      const replies: [string, Reply][] = [
        ['payinCreate', reply],
        ['payinQuery', await subject.query('payinQuery', mchOrderNo)],
      ]
      if (subject.canBePaid) {
        const payout = await subject.payout()
        replies.push(['apply', payout.reply])
        replies.push(['payoutQuery', await subject.query('payoutQuery', payout.mchOrderNo)])
      }
      for (const [operation, { sign }] of replies) demand(sign === 'good', `${operation}: ${sign}`)
      return `signed well: ${replies.map(([operation]) => operation).join(', ')}`
    },
  },
  {
    name: 'sign/form',
    about: 'a signature is hexadecimal digits in the dialect’s case, 32 with MD5',
    async ask(subject) {
      const { algorithm, hexCase } = subject.dialect.sign
      const { reply } = await subject.payin()
      const digits = hexCase === 'upper' ? /^[0-9A-F]+$/ : /^[0-9a-f]+$/
      const length = algorithm === 'md5' ? 32 : 64
      const sign = reply.fields.get('sign') ?? ''
      demand(sign.length === length && digits.test(sign), `it has ${sign.length} characters`)
      return `${length} digits`
    },
  },
  {
    name: 'sign/failures',
    about: 'whether a refusal is signed',
    open: true,
    async ask(subject) {
      const reply = await subject.query('payinQuery', subject.newOrderNo())
      return `${codeOf(reply)}: ${reply.sign === 'unsigned' ? 'unsigned' : `signed, ${reply.sign}`}`
    },
  },
  {
    name: 'sign/http-status',
    about: 'which HTTP status a refusal has',
    open: true,
    async ask(subject) {
      const { httpStatus } = await subject.ask('balance', subject.queryFields('balance'), { sign: 'wrong' })
      return `HTTP ${httpStatus}`
    },
  },
]

async function turnedAway(subject: Subject, sign: 'wrong' | 'none'): Promise<string> {
  const codes = new Set<string>()
  for (const [operation, given] of await oneOfEach(subject)) {
    const reply = await subject.ask(operation, given, { sign })
    demand(!succeeded(reply), `${operation} takes it`)
    codes.add(codeOf(reply))
  }
  return `refused: ${[...codes].join(', ')}`
}

/** A good request of every operation; of apply only if there is a beneficiary. */
async function oneOfEach(subject: Subject): Promise<[Operation, Given][]> {
  const { mchOrderNo, platformNo } = await subject.payin()
  const payouts: [Operation, Given][] = subject.canBePaid
    ? [
        ['apply', subject.payoutFields()],
        ['payoutQuery', subject.queryFields('payoutQuery', await numberOf(subject))],
      ]
    : []
  return [
    ['payinCreate', subject.payinFields()],
    ['payinQuery', subject.queryFields('payinQuery', { mchOrderNo })],
    ['payinRecovery', subject.recoveryFields(platformNo, '000000000000')],
    ['balance', subject.queryFields('balance')],
    ...payouts,
  ]
}

const numberOf = async (subject: Subject): Promise<Given> => ({
  mchOrderNo: (await subject.payout()).mchOrderNo,
})
