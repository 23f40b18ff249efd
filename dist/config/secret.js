import { readFileSync } from 'node:fs';
/**
 * A secret by reference: `env:NAME` or `file:/path`. The secret itself never stands in a file of settings.
 * Throws an Error that names the reference, never the secret.
 */
export function resolveSecret(reference, env) {
    const [kind, place] = [
        reference.slice(0, reference.indexOf(':')),
        reference.slice(reference.indexOf(':') + 1),
    ];
    if (kind === 'env') {
        const value = env[place];
        if (!value)
            throw new Error(`${reference}: the variable is not set`);
        return value;
    }
    if (kind === 'file')
        return readSecret(place, reference);
    throw new Error('a secret must be given as env:NAME or file:/path');
}
/**
 * The environment in which each of `names` is set: as it stands, or from the file that NAME_FILE is the path
 * of. The faults (a file that cannot be read or is empty, NAME and NAME_FILE both given) name the variable,
 * and show neither the secret nor the path: that may be a secret by mistake.
 */
export function withSecretFiles(env, names) {
    const secrets = {};
    const faults = [];
    for (const name of names) {
        const file = env[`${name}_FILE`];
        if (!file)
            continue;
        if (env[name]) {
            faults.push(`${name} and ${name}_FILE are both set: give one of them`);
            continue;
        }
        try {
            secrets[name] = readSecret(file, `${name}_FILE`);
        }
        catch (error) {
            faults.push(error instanceof Error ? error.message : String(error));
        }
    }
    return { env: { ...env, ...secrets }, faults };
}
/** What stands in the file, without the line's end that editors add. `name` is what errors call the file. */
function readSecret(file, name) {
    let secret;
    try {
        secret = readFileSync(file, 'utf8').trim();
    }
    catch (error) {
        throw new Error(`${name}: the file cannot be read (${error.code})`, {
            cause: error,
        });
    }
    if (secret === '')
        throw new Error(`${name}: the file is empty`);
    return secret;
}
