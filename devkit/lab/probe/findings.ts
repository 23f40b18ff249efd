import type { Dialect } from '../../../src/gateway/dialect/dialect.ts'
import { loadDialect } from '../../../src/gateway/dialect/dialect-file.ts'
import type { SignRules } from '../../../src/gateway/wire/sign.ts'
import { readMessage } from '../../../src/gateway/wire/values.ts'
import type { Place, ProbeAnswer } from './conversation.ts'

/** The results of a probe's calls. */
export type Seen = {
  balance: Place
  /** Whether the gateway refuses the balance for a wrong signature. */
  balanceIsGuarded: boolean
  /** The signature variants still possible; at least one, the default first among equals. */
  ways: readonly SignRules[]
  /** Paths that understood a payout query of an absent order. */
  payoutQueryPaths: readonly string[]
  payinQueryPath: string | null
  knownOrder: 'not-given' | 'not-found' | { path: string; answer: ProbeAnswer }
  /** Answers to well-signed queries of an absent order, and to wrongly signed calls. */
  failures: readonly ProbeAnswer[]
  toStrangers: readonly ProbeAnswer[]
}

export type Findings = {
  /** A dialect file's content: the settings shown. The rest stays as in the default, which it extends. */
  dialect: { [setting: string]: unknown }
  shown: readonly { setting: string; value: unknown }[]
  /** What harmless calls did not show: the default that stays, and why the calls could not show it. */
  kept: readonly { setting: string; value: unknown; why: string }[]
  /** Whether the order that was given as known exists. */
  knownOrder: 'not-given' | 'not-found' | 'found'
  /** What no dialect can express but a person should know. */
  warnings: readonly string[]
  /** The retCodes received: hints for the tables, which the gateway's people must confirm. */
  retCodes: { absentOrder: readonly string[]; wrongSignature: readonly string[] }
}

const TOO_MUCH = 'only a call that moves money would show it'
const PATH_OF_ONE = 'the contract has one path, and only a call that creates something would prove it'
const NOT_TOLD_APART = 'no answer depended on it'

/** Every setting that describes a gateway, with why it may stay unshown. */
const SETTINGS: { readonly [setting: string]: string } = {
  body: NOT_TOLD_APART,
  'sign.algorithm': NOT_TOLD_APART,
  'sign.hexCase': NOT_TOLD_APART,
  'sign.keySuffix': NOT_TOLD_APART,
  'sign.sort':
    'the gateway refuses parameters that it does not know, and every call that it accepts has the same signature in both orders',
  'sign.emptyFields.requests':
    'the gateway refuses parameters that it does not know, and no other parameter may be empty',
  'sign.emptyFields.answers': 'no signed answer had an empty field; give --order with a payout that has one',
  'sign.emptyFields.callbacks': 'only a callback shows it: give one to `payoutd gateway verify`',
  'sign.failures': 'the gateway refused no well-signed query in another way than a wrongly signed one',
  'paths.balance': NOT_TOLD_APART,
  'paths.payoutQuery':
    'queries of an order that does not exist got the same answer at both paths; give --order with a payout that exists',
  'paths.payinQuery': NOT_TOLD_APART,
  'paths.apply': PATH_OF_ONE,
  'paths.payinCreate': PATH_OF_ONE,
  'paths.payinRecovery': PATH_OF_ONE,
  'retCodes.apply': TOO_MUCH,
  'retCodes.query': 'one answer does not prove what a code means; see the retCodes below and ask the gateway',
  'retCodes.payinCreate': 'only a call that creates something would show it',
  'retCodes.payinQuery':
    'one answer does not prove what a code means; see the retCodes below and ask the gateway',
  'retCodes.payinRecovery': 'only a call that changes something would show it',
  duplicateApply: `${TOO_MUCH}; leave it until the gateway’s operator promises it`,
  vpaAccountNo: TOO_MUCH,
  reqTimeZone: 'the contract does not say that the gateway checks it',
}

/** Derives a gateway's dialect from what the probe saw. */
export function findingsOf(seen: Seen): Findings {
  const values = new Map(shownBy(seen))
  const shown = [...values].map(([setting, value]) => ({ setting, value }))
  const standard = loadDialect('default')
  const kept = Object.entries(SETTINGS)
    .filter(([setting]) => !values.has(setting))
    .map(([setting, why]) => ({ setting, value: valueIn(standard, setting), why }))
  return {
    dialect: { extends: 'default', ...nested(values) },
    shown,
    kept,
    knownOrder: typeof seen.knownOrder === 'object' ? 'found' : seen.knownOrder,
    warnings: warningsOf(seen),
    retCodes: { absentOrder: codesOf(seen.failures), wrongSignature: codesOf(seen.toStrangers) },
  }
}

type FoundSettings = { [name: string]: unknown }
type Shown = readonly [setting: string, value: unknown]

function shownBy({ balance, ways, payoutQueryPaths, payinQueryPath, knownOrder, failures }: Seen): Shown[] {
  const payoutQuery =
    typeof knownOrder === 'object'
      ? knownOrder.path
      : payoutQueryPaths.length === 1
        ? payoutQueryPaths[0]
        : null
  return [
    ['body', balance.body],
    ...agreed('sign.algorithm', ways, ({ algorithm }) => algorithm),
    ...agreed('sign.sort', ways, ({ sort }) => sort),
    ...agreed('sign.hexCase', ways, ({ hexCase }) => hexCase),
    ...agreed('sign.keySuffix', ways, ({ keySuffix }) => keySuffix),
    ...agreed('sign.emptyFields.requests', ways, ({ emptyFields }) => emptyFields.requests),
    ...agreed('sign.emptyFields.answers', ways, ({ emptyFields }) => emptyFields.answers),
    ...(failures.length > 0 ? [['sign.failures', failures.every(isSigned)] as const] : []),
    ['paths.balance', balance.path],
    ...(payoutQuery ? [['paths.payoutQuery', payoutQuery] as const] : []),
    ...(payinQueryPath ? [['paths.payinQuery', payinQueryPath] as const] : []),
  ]
}

/** The setting, if it is the same in all variants still possible. */
function agreed(setting: string, ways: readonly SignRules[], of: (rules: SignRules) => unknown): Shown[] {
  const [value, ...others] = new Set(ways.map(of))
  return others.length === 0 ? [[setting, value]] : []
}

function warningsOf({ balanceIsGuarded, knownOrder }: Seen): string[] {
  const warnings: string[] = []
  if (!balanceIsGuarded)
    warnings.push('the gateway returns the balance to anybody: it does not check the signature of this call')
  if (knownOrder === 'not-found') warnings.push('the gateway found the order of --order at no path')
  if (typeof knownOrder === 'object' && !isSigned(knownOrder.answer)) {
    warnings.push(
      'the answer about the order of --order has no signature, so payoutd would not believe such answers',
    )
  }
  return warnings
}

const isSigned = ({ fields }: ProbeAnswer): boolean => Boolean(fields.get('sign'))

const codesOf = (answers: readonly ProbeAnswer[]): string[] => [
  ...new Set(answers.map(({ retCode }) => readMessage(retCode, []) ?? '')),
]

function valueIn(dialect: Dialect, setting: string): unknown {
  let value: unknown = dialect
  for (const name of setting.split('.')) value = (value as FoundSettings)[name]
  return value
}

/** The settings as a dialect file nests them. */
function nested(values: ReadonlyMap<string, unknown>): FoundSettings {
  const root: FoundSettings = {}
  for (const [setting, value] of values) {
    const names = setting.split('.')
    let place = root
    for (const name of names.slice(0, -1)) {
      place[name] ??= {}
      place = place[name] as FoundSettings
    }
    place[names.at(-1) as string] = value
  }
  return root
}
