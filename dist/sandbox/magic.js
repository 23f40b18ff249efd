const USUAL = { manner: { kind: 'plain' }, becomes: 'paid', letters: ['truth'] };
/** By the two digits after the prefix. `n` is the number in the two digits after those, if they are there. */
const CODES = {
    '01': () => ({ becomes: 'failed' }),
    '02': () => ({ letters: [] }),
    '03': () => ({ letters: ['truth', 'truth'] }),
    '04': () => ({ manner: { kind: 'after-callback' }, settleMs: 0 }),
    '05': () => ({ manner: { kind: 'hang' } }),
    '06': () => ({ obstacle: { tries: 1, kind: 'hang' } }),
    '07': () => ({ obstacle: { tries: 1, kind: 'http-500' } }),
    '08': () => ({ manner: { kind: 'http-500' } }),
    '09': () => ({ manner: { kind: 'bad-signature' } }),
    '10': (n = 20) => ({ manner: { kind: 'late', ms: n * 100 } }),
    '11': (n = 2) => ({ obstacle: { tries: n, kind: 'too-fast' } }),
    '12': () => ({ letters: ['truth', 'denial'] }),
    '13': () => ({ letters: ['forgery', 'truth'] }),
    '14': () => ({ letters: ['other-amount'] }),
    '15': () => ({ manner: { kind: 'reset' } }),
    '16': (n = 10) => ({ settleMs: n * 1000 }),
};
const MAGIC = /^99990000(\d\d)(\d\d)?/;
/** What an account number asks for. Any number that is not magic is paid and called back about. */
export function behaviourOf(accountNo) {
    const [, code = '', n] = MAGIC.exec(accountNo) ?? [];
    const special = CODES[code];
    return special ? { ...USUAL, ...special(n === undefined ? undefined : Number(n)) } : USUAL;
}
