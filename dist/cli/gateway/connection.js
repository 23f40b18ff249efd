import { Option } from 'commander';
import { readConfiguredMerchants } from "../../config/config.js";
import { resolveSecret } from "../../config/secret.js";
import { createGatewayClient, parseBaseUrl } from "../../gateway/client.js";
import { loadDialect } from "../../gateway/dialect-file.js";
import { systemClock } from "../../platform/clock.js";
import { ExpectedFailure } from "../../platform/expected-failure.js";
import { pathOf } from "../path-of.js";
const ACCOUNT = ['baseUrl', 'mchId', 'key', 'keyEnv', 'keyFile'];
/** Adds the options of KeyOptions but the dialect. */
const withKey = (command) => command
    .option('--merchant <id>', 'whose settings to use; may be left out where there is one merchant')
    .addOption(new Option('--key <key>', 'the key itself: other users of this machine can read it meanwhile'))
    .addOption(new Option('--key-env <name>', 'the variable that holds the key').conflicts('key'))
    .addOption(new Option('--key-file <path>', 'the file that holds the key')
    .argParser(pathOf)
    .conflicts(['key', 'keyEnv']));
/** Adds the options of AccountOptions: the merchant's settings, or an account given in full. */
export const withAccount = (command) => withKey(command)
    .option('--base-url <url>', 'instead of a merchant of the settings; needs --mch-id and a key')
    .option('--mch-id <number>', 'the merchant number at this gateway');
const withDialect = (command) => command.option('--dialect <name>', 'a name, or the path of a JSON file; instead of the merchant’s, or default');
export const withConnection = (command) => withDialect(withAccount(command));
/** `dialect` is null where only the account is known. Throws an ExpectedFailure or a ConfigError. */
export function accountOf(options) {
    const account = ACCOUNT.some((name) => name in options) ? given(options) : configured(options.merchant);
    expecting(() => parseBaseUrl(account.baseUrl));
    return account;
}
function given(options) {
    const { baseUrl, mchId } = options;
    const key = keyGiven(options);
    if (baseUrl === undefined || mchId === undefined || key === undefined || options.merchant !== undefined) {
        throw new ExpectedFailure('an account is given by --base-url, --mch-id and one of --key-file, --key-env and --key, all three and without --merchant');
    }
    return { baseUrl, mchId, key, tls: {}, dialect: null };
}
/** Throws an ExpectedFailure or a ConfigError. */
export function connectionOf(options) {
    const { dialect, ...account } = accountOf(options);
    return { ...account, dialect: dialectGiven(options, dialect) };
}
/**
 * The key and the dialect by which something was signed: a key that is given is enough, whosever it is. Throws an
 * ExpectedFailure or a ConfigError.
 */
export function keyOf(options) {
    const key = keyGiven(options);
    return key === undefined ? connectionOf(options) : { key, dialect: dialectGiven(options, null) };
}
/** The dialect of that name or path. Throws an ExpectedFailure that names what is wrong. */
export const dialectNamed = (name) => expecting(() => loadDialect(name));
/** Calls the gateway and lets go of the connection. */
export async function withClient({ baseUrl, mchId, key, tls, dialect }, work) {
    const client = createGatewayClient({
        baseUrl,
        mchId,
        key,
        tls,
        dialect,
        connections: 1,
        clock: systemClock,
    });
    try {
        return await work(client);
    }
    finally {
        await client.close();
    }
}
function configured(id) {
    const merchants = readConfiguredMerchants(process.env);
    const [only, ...others] = merchants.values();
    const merchant = id === undefined && others.length === 0 ? only : merchants.get(id ?? '');
    if (merchant)
        return merchant;
    const names = [...merchants.keys()].join(', ');
    throw new ExpectedFailure(id === undefined
        ? `which merchant? give --merchant, one of ${names}`
        : `no merchant is called ${id}: the settings have ${names}`);
}
function keyGiven({ key, keyEnv, keyFile }) {
    if (keyEnv !== undefined)
        return expecting(() => resolveSecret(`env:${keyEnv}`, process.env));
    if (keyFile !== undefined)
        return expecting(() => resolveSecret(`file:${keyFile}`, process.env));
    return key;
}
const dialectGiven = ({ dialect }, otherwise) => dialect === undefined && otherwise ? otherwise : dialectNamed(dialect ?? 'default');
/** For what fails only by what the operator gave: the error's message says how. */
function expecting(work) {
    try {
        return work();
    }
    catch (error) {
        throw new ExpectedFailure(error instanceof Error ? error.message : String(error), { cause: error });
    }
}
