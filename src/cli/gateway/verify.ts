import { text } from 'node:stream/consumers'
import { Command } from 'commander'
import type { Dialect } from '../../gateway/dialect.ts'
import { redactReceived } from '../../gateway/exchange.ts'
import { type SignVariant, variantsThatVerify } from '../../gateway/sign-variants.ts'
import { readingsOf, readSignedQuery } from '../../gateway/signed-query.ts'
import { type KeyOptions, keyOf, withDialect, withKey } from './connection.ts'
import { EXIT, type Fact, type Outcome, tell } from './outcome.ts'

export const verifyCommand = withDialect(withKey(new Command('verify')))
  .description('say whether a callback is signed with the key, and if not, in which dialect it would be')
  .argument('[url]', 'the URL that was called, or its query string; read from stdin if it is not given')
  .option('--json', 'print it as JSON')
  .action(async (url: string | undefined, { json, ...options }: KeyOptions & { json?: true }) => {
    const { key, dialect } = keyOf(options)
    const given = (url ?? (await text(process.stdin))).trim()
    tell(outcomeOf(queryStringOf(given), key, dialect), json === true)
  })

const queryStringOf = (given: string): string => (given.split('#', 1)[0] ?? '').replace(/^[^?]*\?/, '')

function outcomeOf(query: string, key: string, { sign: rules }: Dialect): Outcome {
  const read = readSignedQuery(query, rules, key)
  switch (read.kind) {
    case 'verified': {
      const fields = redactReceived(read.fields, [])
      const facts = Object.entries(fields)
      return { code: EXIT.yes, title: 'the signature verifies', facts, json: { verifies: true, fields } }
    }
    case 'malformed': {
      const title = `no callback can be read from it: ${read.why}`
      return { code: EXIT.no, title, facts: [], json: { verifies: false, malformed: read.why } }
    }
    case 'bad-signature': {
      const variant = nearestTo(rules, variantsOf(query, key))
      return {
        code: EXIT.no,
        title: variant
          ? 'the signature does not verify in this dialect; it would with'
          : 'the signature does not verify in any known dialect: the key is another, or a parameter was changed',
        facts: variant ? differences(variant, rules) : [],
        json: { verifies: false, variant },
      }
    }
  }
}

const variantsOf = (query: string, key: string): SignVariant[] =>
  readingsOf(query).flatMap((reading) =>
    typeof reading === 'string' ? [] : variantsThatVerify(reading, key),
  )

/** Where several would do, the one that changes the least. */
const nearestTo = (rules: Dialect['sign'], variants: readonly SignVariant[]): SignVariant | null =>
  variants.toSorted((a, b) => differences(a, rules).length - differences(b, rules).length)[0] ?? null

function differences({ emptyFields, ...variant }: SignVariant, rules: Dialect['sign']): Fact[] {
  const settings = [
    ...(['algorithm', 'hexCase', 'keySuffix', 'sort'] as const).map(
      (name) => [`sign.${name}`, variant[name], rules[name]] as const,
    ),
    ['sign.emptyFields.callbacks', emptyFields, rules.emptyFields.callbacks] as const,
  ]
  return settings
    .filter(([, wanted, set]) => wanted !== set)
    .map(([name, wanted, set]) => [name, `${wanted} instead of ${set}`])
}
