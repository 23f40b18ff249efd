import { type Command, Option } from 'commander'
import { readConfiguredMerchants } from '../../../config/config.ts'
import type { Merchant } from '../../../config/merchants.ts'
import { resolveSecret } from '../../../config/secret.ts'
import { parseBaseUrl } from '../../../gateway/base-url.ts'
import { createGatewayClient, type GatewayClient } from '../../../gateway/client.ts'
import type { Dialect } from '../../../gateway/dialect/dialect.ts'
import { loadDialect } from '../../../gateway/dialect/dialect-file.ts'
import type { TlsFiles } from '../../../gateway/transport/connections.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import { systemClock } from '../../../platform/running/clock.ts'
import { pathOf } from '../../options/path-of.ts'

/** A merchant's account at a gateway. */
export type GatewayAccount = { baseUrl: string; mchId: string; key: string; tls: TlsFiles }
export type GatewayConnection = GatewayAccount & { dialect: Dialect }

/** The merchant to take from the settings, or a key and a dialect in its place. */
export type KeyOptions = {
  merchant?: string
  key?: string
  keyEnv?: string
  keyFile?: string
  dialect?: string
}
export type AccountOptions = Omit<KeyOptions, 'dialect'> & { baseUrl?: string; mchId?: string }
export type ConnectionOptions = AccountOptions & KeyOptions

const ACCOUNT = ['baseUrl', 'mchId', 'key', 'keyEnv', 'keyFile']

/** Adds the options of KeyOptions except the dialect. */
const withKey = (command: Command): Command =>
  command
    .option(
      '--merchant <id>',
      'the merchant whose settings to use; you can omit it if there is only one merchant',
    )
    .addOption(
      new Option(
        '--key <key>',
        'the key itself; other users of this machine can read it while the command runs',
      ),
    )
    .addOption(
      new Option('--key-env <name>', 'the environment variable that contains the key').conflicts('key'),
    )
    .addOption(
      new Option('--key-file <path>', 'the file that contains the key')
        .argParser(pathOf)
        .conflicts(['key', 'keyEnv']),
    )

/** Adds the options of AccountOptions: the merchant's settings, or a complete account. */
export const withAccount = (command: Command): Command =>
  withKey(command)
    .option('--base-url <url>', 'use this gateway instead of a merchant’s settings; needs --mch-id and a key')
    .option('--mch-id <number>', 'the merchant number at this gateway')

const withDialect = (command: Command): Command =>
  command.option(
    '--dialect <name>',
    'the name of a dialect, or the path of a JSON file, instead of the merchant’s dialect or default',
  )

export const withConnection = (command: Command): Command => withDialect(withAccount(command))

/** `dialect` is null if only the account is known. Throws an ExpectedFailure or a ConfigError. */
export function accountOf(options: AccountOptions): GatewayAccount & { dialect: Dialect | null } {
  const account = ACCOUNT.some((name) => name in options) ? given(options) : configured(options.merchant)
  expecting(() => parseBaseUrl(account.baseUrl))
  return account
}

function given(options: AccountOptions): GatewayAccount & { dialect: null } {
  const { baseUrl, mchId } = options
  const key = keyGiven(options)
  if (baseUrl === undefined || mchId === undefined || key === undefined || options.merchant !== undefined) {
    throw new ExpectedFailure(
      'to use an account without --merchant, give --base-url, --mch-id and one of --key-file, --key-env and --key',
    )
  }
  return { baseUrl, mchId, key, tls: {}, dialect: null }
}

/** Throws an ExpectedFailure or a ConfigError. */
export function connectionOf(options: ConnectionOptions): GatewayConnection {
  const { dialect, ...account } = accountOf(options)
  return { ...account, dialect: dialectGiven(options, dialect) }
}

/** The key and the dialect of a signature: a given key is enough, whoever owns it. Throws an ExpectedFailure or a ConfigError. */
export function keyOf(options: ConnectionOptions): { key: string; dialect: Dialect } {
  const key = keyGiven(options)
  return key === undefined ? connectionOf(options) : { key, dialect: dialectGiven(options, null) }
}

/** The dialect of that name or path. Throws an ExpectedFailure that names the fault. */
export const dialectNamed = (name: string): Dialect => expecting(() => loadDialect(name))

/** Calls the gateway, then closes the connection. */
export async function withClient<T>(
  { baseUrl, mchId, key, tls, dialect }: GatewayConnection,
  work: (client: GatewayClient) => Promise<T>,
): Promise<T> {
  const client = createGatewayClient({
    baseUrl,
    mchId,
    key,
    tls,
    dialect,
    connections: 1,
    clock: systemClock,
  })
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

function configured(id: string | undefined): Merchant {
  const merchants = readConfiguredMerchants(process.env)
  const [only, ...others] = merchants.values()
  const merchant = id === undefined && others.length === 0 ? only : merchants.get(id ?? '')
  if (merchant) return merchant
  const names = [...merchants.keys()].join(', ')
  throw new ExpectedFailure(
    id === undefined
      ? `which merchant? give --merchant, one of ${names}`
      : `there is no merchant ${id}; the settings have ${names}`,
  )
}

function keyGiven({ key, keyEnv, keyFile }: KeyOptions): string | undefined {
  if (keyEnv !== undefined) return expecting(() => resolveSecret(`env:${keyEnv}`, process.env))
  if (keyFile !== undefined) return expecting(() => resolveSecret(`file:${keyFile}`, process.env))
  return key
}

const dialectGiven = ({ dialect }: KeyOptions, otherwise: Dialect | null): Dialect =>
  dialect === undefined && otherwise ? otherwise : dialectNamed(dialect ?? 'default')

/** For work that fails only because of the operator's input: the error's message says how. */
function expecting<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new ExpectedFailure(error instanceof Error ? error.message : String(error), { cause: error })
  }
}
