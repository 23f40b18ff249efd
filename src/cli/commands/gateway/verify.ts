import { text } from 'node:stream/consumers'
import { Command } from 'commander'
import type { Dialect } from '../../../gateway/dialect/dialect.ts'
import { redactReceived } from '../../../gateway/wire/exchange.ts'
import { type SignVariant, variantsThatVerify } from '../../../gateway/wire/sign-variants.ts'
import { readingsOf, readSignedQuery, type SignedParameters } from '../../../gateway/wire/signed-query.ts'
import { type ConnectionOptions, keyOf, withConnection } from './connection.ts'
import { EXIT, type Fact, type GatewayOutcome, printOutcome } from './outcome.ts'

export const verifyCommand = withConnection(new Command('verify'))
  .description(
    'check whether a callback is signed with the key; if not, name the dialect in which it would be',
  )
  .argument('[url]', 'the URL that the gateway called, or its query string; without it, read from stdin')
  .option('--json', 'print JSON')
  .action(async (url: string | undefined, { json, ...options }: ConnectionOptions & { json?: true }) => {
    const { key, dialect } = keyOf(options)
    const given = (url ?? (await text(process.stdin))).trim()
    printOutcome(outcomeOf(queryStringOf(given), key, dialect), json === true)
  })

const queryStringOf = (given: string): string => (given.split('#', 1)[0] ?? '').replace(/^[^?]*\?/, '')

function outcomeOf(query: string, key: string, { sign: rules }: Dialect): GatewayOutcome {
  const read = readSignedQuery(query, rules, key)
  switch (read.kind) {
    case 'verified': {
      const fields = redactReceived(read.fields, [])
      const facts = Object.entries(fields)
      return { code: EXIT.yes, title: 'the signature verifies', facts, json: { verifies: true, fields } }
    }
    case 'malformed': {
      const title = `this is not a readable callback: ${read.why}`
      return { code: EXIT.no, title, facts: [], json: { verifies: false, malformed: read.why } }
    }
    case 'bad-signature':
      return unverified(readable(query), key, rules)
  }
}

function unverified(
  readings: readonly SignedParameters[],
  key: string,
  rules: Dialect['sign'],
): GatewayOutcome {
  const no = { code: EXIT.no, facts: [] }
  if (!readings.some((fields) => fields.get('sign'))) {
    const title = 'it has no sign parameter, so there is no signature to verify'
    return { ...no, title, json: { verifies: false, unsigned: true } }
  }
  const [nearest] = readings
    .flatMap((fields) => remedies(fields, key, rules))
    .toSorted((a, b) => costOf(a) - costOf(b))
  if (!nearest) {
    const title =
      'the signature does not verify in any known dialect: the key is wrong, or somebody changed a parameter'
    return { ...no, title, json: { verifies: false, settings: null, without: null } }
  }
  const { settings, without } = nearest
  return {
    ...no,
    title: titleOf(nearest),
    facts: settings.map(([name, wanted, set]): Fact => [name, `${wanted} instead of ${set}`]),
    json: {
      verifies: false,
      settings: Object.fromEntries(settings.map(([name, wanted]) => [name, wanted])),
      without,
    },
  }
}

/** What would make a signature verify: other settings, and one parameter, or none, left out. */
type Remedy = { settings: readonly SettingDifference[]; without: string | null }
type SettingDifference = readonly [setting: string, wanted: string | boolean, set: string | boolean]

function titleOf({ settings, without }: Remedy): string {
  if (without === null) return 'the signature does not verify in this dialect; it would verify with'
  const title = `the signature does not verify; it would verify without the parameter ${without}`
  return settings.length > 0 ? `${title} and with` : title
}

/** An extra parameter is less likely than a setting that differs: even all settings together cost less. */
const costOf = ({ settings, without }: Remedy): number => settings.length + (without === null ? 0 : 10)

function remedies(fields: SignedParameters, key: string, rules: Dialect['sign']): Remedy[] {
  const under = (left: SignedParameters, without: string | null): Remedy[] =>
    variantsThatVerify(left, key).map((variant) => ({ settings: differences(variant, rules), without }))
  const others = [...fields.keys()].filter((name) => name !== 'sign')
  return [
    ...under(fields, null),
    ...others.flatMap((name) => under(new Map([...fields].filter(([each]) => each !== name)), name)),
  ]
}

const readable = (query: string): SignedParameters[] =>
  readingsOf(query).filter((reading) => typeof reading !== 'string')

function differences({ emptyFields, ...variant }: SignVariant, rules: Dialect['sign']): SettingDifference[] {
  const settings: SettingDifference[] = [
    ...(['algorithm', 'hexCase', 'keySuffix', 'sort'] as const).map(
      (name) => [`sign.${name}`, variant[name], rules[name]] as const,
    ),
    ['sign.emptyFields.callbacks', emptyFields, rules.emptyFields.callbacks],
  ]
  return settings.filter(([, wanted, set]) => wanted !== set)
}
