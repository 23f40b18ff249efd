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
    'sign what stands in stdin, a JSON object {"key": "…", "params": {…}} a line, and print one signature a line. ' +
      'Numbers are signed as they are written; a field named sign takes no part',
  )
  .option('--dialect <name>', 'a name, or the path of a JSON file', 'default')
  .option('--json', 'print each as a line of JSON')
  .action(async ({ dialect, json }: { dialect: string; json?: true }) => {
    const { sign: rules } = dialectNamed(dialect)
    let line = 0
    for await (const text of createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
      line++
      const sign = signatureOf(text, rules)
      // A line that is wrong ends it, because the ones after it would stand beside the wrong signatures.
      if (sign === null) {
        throw new ExpectedFailure(
          `line ${line}: must be a JSON object {"key": "…", "params": {…}}, the key not empty and no name twice`,
        )
      }
      print(json ? JSON.stringify({ sign }) : sign)
    }
  })

const lineSchema = z.object({ key: z.string().min(1), params: z.record(z.string(), z.unknown()) })

/** The signature that a line asks for, as a request is signed; null for a line that asks for none. */
export function signatureOf(line: string, rules: SignRules): string | null {
  const fields = readJsonFields(line)
  if (!fields) return null
  const parsed = lineSchema.safeParse(JSON.parse(line))
  const params = readJsonFields(fields.get('params') ?? '')
  return parsed.success && params ? signature(params, parsed.data.key, rules, 'requests') : null
}
