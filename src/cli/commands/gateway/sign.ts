import { createInterface } from 'node:readline'
import { Command } from 'commander'
import { z } from 'zod'
import { readJsonFields } from '../../../gateway/wire/json-fields.ts'
import { type SignRules, signature } from '../../../gateway/wire/sign.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import { print } from '../../print.ts'
import { dialectNamed } from './connection.ts'

export const signCommand = new Command('sign')
  .description(
    'sign each line of stdin, a JSON object {"key": "…", "params": {…}}, and print one signature per line. ' +
      'Numbers are signed as written; a field named sign is left out',
  )
  .option('--dialect <name>', 'the name of a dialect, or the path of a JSON file', 'default')
  .option('--json', 'print one JSON object per line')
  .action(async ({ dialect, json }: { dialect: string; json?: true }) => {
    const { sign: rules } = dialectNamed(dialect)
    let line = 0
    for await (const text of createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
      line++
      const sign = signatureOf(text, rules)
      // A wrong line ends the command, because later signatures would stand beside the wrong lines.
      if (sign === null) {
        throw new ExpectedFailure(
          `line ${line}: must be a JSON object {"key": "…", "params": {…}}, with a key that is not empty and no name twice`,
        )
      }
      print(json ? JSON.stringify({ sign }) : sign)
    }
  })

const lineSchema = z.object({ key: z.string().min(1), params: z.record(z.string(), z.unknown()) })

/** The signature that a line asks for, computed like that of a request; null if the line asks for none. */
export function signatureOf(line: string, rules: SignRules): string | null {
  const fields = readJsonFields(line)
  if (!fields) return null
  const parsed = lineSchema.safeParse(JSON.parse(line))
  const params = readJsonFields(fields.get('params') ?? '')
  return parsed.success && params ? signature(params, parsed.data.key, rules, 'requests') : null
}
