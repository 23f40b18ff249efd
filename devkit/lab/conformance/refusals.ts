import { demand } from './demand.ts'
import { codeOf, succeeded } from './reply.ts'
import type { Given, Operation, Subject } from './subject.ts'

/** A request that breaks one rule, and a description of how. */
export type Wrong = readonly [how: string, given: Given]

/** Sends each request and demands a refusal. Resolves with the refusals. */
export async function refusesAll(
  subject: Subject,
  operation: Operation,
  wrongs: readonly Wrong[],
): Promise<string> {
  const codes = new Set<string>()
  for (const [how, given] of wrongs) {
    const reply = await subject.ask(operation, given)
    demand(!succeeded(reply), `takes ${how}`)
    codes.add(codeOf(reply))
  }
  return `refused: ${[...codes].join(', ')}`
}

/**
 * Sends orders that each break one rule, after one that breaks none: the server must refuse all, and no query may
 * find them. Throws NotTried if it refuses even the good one.
 */
export async function takesNone(
  subject: Subject,
  operation: 'payinCreate' | 'apply',
  breaks: readonly (readonly [how: string, over: Given])[],
): Promise<string> {
  const payin = operation === 'payinCreate'
  await (payin ? subject.payin() : subject.payout())
  const wrongs = breaks.map(
    ([how, over]): Wrong => [how, payin ? subject.payinFields(over) : subject.payoutFields(over)],
  )
  const refused = await refusesAll(subject, operation, wrongs)
  for (const [how, { mchOrderNo }] of wrongs) {
    if (typeof mchOrderNo !== 'string' || mchOrderNo.length > 30) continue
    const found = await subject.query(payin ? 'payinQuery' : 'payoutQuery', mchOrderNo)
    demand(!succeeded(found), `refuses ${how}, and a query finds the order`)
  }
  return refused
}

/** One wrong order per parameter, with that parameter left out. */
export const without = (...names: readonly string[]) =>
  names.map((name) => [`no ${name}`, { [name]: null }] as const)

/** One wrong order for each value. */
export const withEach = (name: string, values: readonly (string | bigint)[]) =>
  values.map((value) => [`${name} ${shown(String(value))}`, { [name]: value }] as const)

const shown = (value: string): string => (value.length > 20 ? `of ${value.length} characters` : value)
