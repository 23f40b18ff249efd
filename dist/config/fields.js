import { z } from 'zod';
/** What settings are made of, in variables and in files. Each message says what is wanted, for people. */
/** A whole number in digits, or as JSON has it. */
export function whole(min, max = Number.MAX_SAFE_INTEGER) {
    const wanted = max === Number.MAX_SAFE_INTEGER
        ? `must be a whole number of at least ${min}`
        : `must be a whole number from ${min} to ${max}`;
    return z.coerce
        .string()
        .regex(/^\d{1,15}$/, wanted)
        .transform(Number)
        .refine((number) => min <= number && number <= max, wanted);
}
/** The address of a server, as it was given. */
export const address = (protocol, example) => z.url({ protocol, error: `must be an address, for example ${example}` });
export const oneOf = (words) => z.enum(words, `must be one of ${words.join(', ')}`);
/** True or false in words, or as JSON has it. */
export const yesOrNo = z.coerce.string().pipe(z.stringbool({ error: 'must be true or false' }));
