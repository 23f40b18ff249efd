import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { SECRETS } from '../src/config/config.ts'
import { fieldOf, MERCHANT_SETTINGS, SETTINGS, type Setting } from '../src/config/settings.ts'
import { ANOMALY_KINDS } from '../src/domain/anomaly-kinds.ts'

const code = (text: string): string => `\`${text}\``

const defaultOf = (setting: Setting): string =>
  setting.required ? 'needed' : setting.default === null ? '' : code(setting.default)

const secrets = SECRETS.map(code).join(', ')

/** docs/reference/settings.md. */
export function settingsPage(): string {
  const groups = SETTINGS.map(({ title, settings }) =>
    [
      `## ${title}`,
      '',
      '| variable | default | what it does |',
      '|---|---|---|',
      ...settings.map((setting) => `| ${code(setting.name)} | ${defaultOf(setting)} | ${setting.what} |`),
      '',
    ].join('\n'),
  )
  const merchant = MERCHANT_SETTINGS.map(
    (setting) =>
      `| ${code(setting.name)} | ${code(fieldOf(setting.name))} | ${defaultOf(setting)} | ${setting.what} |`,
  )
  return `# Settings

\`npm run reference\` writes this page and \`.env.example\` from [src/config/settings.ts](../../src/config/settings.ts).

payoutd reads its settings from the environment. It reports every missing or wrong variable at once and does not start. An empty
variable counts as not set. Once the settings are complete, \`payoutd doctor\` says which of the servers that they name do not answer.

Calls to the gateway obey \`HTTPS_PROXY\`, \`HTTP_PROXY\` and \`NO_PROXY\`. \`DATABASE_URL\` takes \`sslmode\`, \`sslrootcert\`, \`sslcert\` and
\`sslkey\`. For Kafka and the registry, \`NODE_EXTRA_CA_CERTS\` names further certificate authorities.

You can keep a secret in a file. Set \`NAME_FILE=/run/secrets/name\` instead of \`NAME\`, never both. This works for ${secrets}.

${groups.join('\n')}
A merchants file looks like this:

\`\`\`json
{
  "merchants": [
    {
      "id": "acme",
      "baseUrl": "https://gateway.example",
      "mchId": "1000100",
      "key": "env:ACME_KEY",
      "dialect": "default",
      "dialectOverrides": { "sign": { "hexCase": "lower" } }
    }
  ]
}
\`\`\`

A key is \`env:NAME\` or \`file:/path\`, never the key itself. The table below names every field. Two fields stand only in a file:

- \`dialectOverrides\`: settings of the [dialect](../../src/gateway/README.md#the-dialect) that differ for this merchant.
- \`formerAccounts\`: accounts that this merchant had before, each with \`baseUrl\`, \`mchId\`, \`key\`, \`formerKeys\`, dialect and certificates. payoutd sends nothing there. It queries their open payouts and accepts their callbacks. Keep an account until nothing is open there and no transfer from it can come back.

## One merchant, without a file

| variable | field in the file | default | what it does |
|---|---|---|---|
${merchant.join('\n')}
`
}

/** .env.example: every variable, those that have a default or are not needed as comments. */
export function envExample(): string {
  const line = ({ name, default: value, required, example, what }: Setting) =>
    `# ${what.replaceAll('`', '')}\n${required ? '' : '# '}${name}=${value ?? example ?? ''}\n`
  const groups = [...SETTINGS, { title: 'One merchant, without a file', settings: MERCHANT_SETTINGS }]
  return groups.map(({ title, settings }) => [`## ${title}\n`, ...settings.map(line)].join('\n')).join('\n')
}

/** docs/reference/anomalies.md. */
export function anomaliesPage(): string {
  const kinds = Object.entries(ANOMALY_KINDS).map(([kind, what]) => `| ${code(kind)} | ${what} |`)
  return `# Kinds of anomalies

\`npm run reference\` writes this page from [src/domain/anomaly-kinds.ts](../../src/domain/anomaly-kinds.ts).

An anomaly is evidence that contradicts the ledger, or that a person should see. payoutd keeps it and publishes it on \`payout.anomalies\`.
[Decide about a payout](../how-to/decide-about-a-payout.md#a-contradiction) says what to do about one. Later releases may add kinds.

| kind | what it says |
|---|---|
${kinds.join('\n')}
`
}

const root = path.resolve(import.meta.dirname, '..')
export const FILES = [
  { file: path.join(root, 'docs', 'reference', 'settings.md'), write: settingsPage },
  { file: path.join(root, 'docs', 'reference', 'anomalies.md'), write: anomaliesPage },
  { file: path.join(root, '.env.example'), write: envExample },
]

if (import.meta.main) for (const { file, write } of FILES) writeFileSync(file, write())
