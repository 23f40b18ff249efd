import { accessSync, constants } from 'node:fs';
import { z } from 'zod';
import { DialectError, loadDialect } from "../gateway/dialect-file.js";
import { paise } from "../payout/money.js";
import { PAY_PERIODS } from "../payout/pay-period.js";
import { isIdentifier } from "../payout/validate.js";
import { faultOf } from "./fault.js";
import { address, oneOf, whole, yesOrNo } from "./fields.js";
import { resolveSecret } from "./secret.js";
const rupees = z.coerce
    .string()
    .regex(/^\d{1,15}$/, 'must be whole rupees, for example 500')
    .transform((amount) => paise(BigInt(amount) * 100n));
const file = z.string('must be the path of a PEM file').min(1).optional();
const ID = 'must be 1 to 64 of A–Z a–z 0–9 . _ : / -';
const MCH_ID = 'must be the merchant number at the gateway, for example "1000100"';
const merchantSchema = z.strictObject({
    id: z.string(ID).refine(isIdentifier, ID),
    baseUrl: address(/^https?$/, 'https://gateway.example').transform((url) => url.replace(/\/+$/, '')),
    mchId: z.string(MCH_ID).min(1, MCH_ID),
    key: z.string('must be env:NAME or file:/path'),
    dialect: z.string('must be the name of a dialect or the path of a JSON file').default('default'),
    dialectOverrides: z
        .record(z.string(), z.unknown(), 'must be an object of settings of a dialect')
        .default({}),
    caFile: file,
    certFile: file,
    keyFile: file,
    minAmountRupees: rupees.optional(),
    maxAmountRupees: rupees.optional(),
    maxInFlight: whole(1).default(64),
    ratePerSecond: whole(1).optional(),
    feeEstimatePaise: whole(0).default(0),
    deadlineHours: whole(1).default(72),
    payPeriod: oneOf(PAY_PERIODS).default('month'),
    holdDuplicates: yesOrNo.default(true),
    holdChangedBeneficiaries: yesOrNo.default(true),
}, 'must be an object of settings');
/** One merchant with everything resolved (`env` holds the secrets it refers to), or what is wrong with it. */
export function readMerchant(input, env) {
    const parsed = merchantSchema.safeParse(input);
    return parsed.success
        ? resolve(parsed.data, env)
        : { faults: parsed.error.issues.flatMap((issue) => faultsOf(issue, input)) };
}
function faultsOf(issue, input) {
    if (issue.code === 'unrecognized_keys')
        return issue.keys.map((field) => ({ field, what: 'is no setting of a merchant' }));
    if (issue.path.length === 0)
        return [{ field: '', what: issue.message }];
    const field = String(issue.path[0]);
    const value = input[field];
    return [{ field, what: faultOf(value, issue.message, { secret: field === 'key' }) }];
}
function resolve(given, env) {
    const faults = [];
    const attempt = (field, read) => {
        try {
            return read();
        }
        catch (error) {
            faults.push(...whatIsWrong(error).map((what) => ({ field, what })));
            return undefined;
        }
    };
    const key = attempt('key', () => resolveSecret(given.key, env));
    const dialect = attempt('dialect', () => loadDialect(given.dialect, given.dialectOverrides));
    const { caFile, certFile, keyFile } = given;
    const files = { caFile, certFile, keyFile };
    for (const [field, place] of Object.entries(files))
        if (place !== undefined)
            attempt(field, () => accessSync(place, constants.R_OK));
    if ((certFile === undefined) !== (keyFile === undefined))
        faults.push({ field: 'certFile', what: 'is used together with its key file' });
    if (key === undefined || dialect === undefined || faults.length > 0)
        return { faults };
    return {
        merchant: {
            merchantId: given.id,
            baseUrl: given.baseUrl,
            mchId: given.mchId,
            key,
            dialect,
            tls: files,
            limits: { minAmount: given.minAmountRupees ?? null, maxAmount: given.maxAmountRupees ?? null },
            maxInFlight: given.maxInFlight,
            ratePerSecond: given.ratePerSecond ?? null,
            feeEstimate: paise(given.feeEstimatePaise),
            deadlineMs: given.deadlineHours * 3_600_000,
            payPeriod: given.payPeriod,
            holdDuplicates: given.holdDuplicates,
            holdChangedBeneficiaries: given.holdChangedBeneficiaries,
        },
    };
}
const whatIsWrong = (error) => error instanceof DialectError
    ? error.faults.map((fault) => `setting ${fault}`)
    : [`cannot be used: ${error instanceof Error ? error.message : String(error)}`];
