import { verify } from "./sign.js";
/**
 * Every way of signing known in the family under which the field `sign` is the signature over the other
 * fields; none if the key or a value is another. More than one where the fields do not tell them apart:
 * nothing is empty, or both sorts come to the same order. The dialect's default comes first among its equals.
 */
export const variantsThatVerify = (fields, key) => VARIANTS.filter(({ emptyFields: all, ...rules }) => {
    const emptyFields = { requests: all, answers: all, callbacks: all };
    return verify(fields, key, { ...rules, emptyFields, failures: true }, 'callbacks') === 'good';
});
export const VARIANTS = ['md5', 'hmac-sha256'].flatMap((algorithm) => ['upper', 'lower'].flatMap((hexCase) => ['key', 'appSecret'].flatMap((keySuffix) => ['whole-ignoring-case', 'name'].flatMap((sort) => [false, true].map((emptyFields) => ({ algorithm, hexCase, keySuffix, sort, emptyFields }))))));
