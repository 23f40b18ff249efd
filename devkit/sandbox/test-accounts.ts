/**
 * One callback of an order's sequence.
 * - truth: what the books say, retried on the schedule until it is acknowledged
 * - denial: says failed though the books say paid, with a good signature; retried likewise
 * - other-amount: the truth except for the amount, with a good signature; retried likewise
 * - forgery: the truth with a wrong signature; sent once, whatever the answer
 */
export type CallbackVariant = 'truth' | 'denial' | 'other-amount' | 'forgery'

/** How the sandbox answers an accepted apply. */
export type ResponseMode =
  | { kind: 'plain' }
  | { kind: 'late'; ms: number }
  | { kind: 'after-callback' }
  | { kind: 'hang' }
  | { kind: 'reset' }
  | { kind: 'http-500' }
  | { kind: 'bad-signature' }
  | { kind: 'unsigned' }
  | { kind: 'garbage' }

/** What happens to the first `tries` applies of an order number, before one is accepted. */
type Obstacle = { tries: number; kind: 'hang' | 'http-500' | 'too-fast' }

/** Everything about an order that depends on the account it pays to. */
export type Behaviour = {
  obstacle?: Obstacle
  responseMode: ResponseMode
  becomes: 'paid' | 'failed'
  /** Milliseconds from acceptance to the end, if it differs from the sandbox's usual delay. */
  settleMs?: number
  callbacks: readonly CallbackVariant[]
}

const USUAL: Behaviour = { responseMode: { kind: 'plain' }, becomes: 'paid', callbacks: ['truth'] }

/** By the two digits after the prefix. `n` is the number in the next two digits, if there are any. */
const CODES: Record<string, (n: number | undefined) => Partial<Behaviour>> = {
  '01': () => ({ becomes: 'failed' }),
  '02': () => ({ callbacks: [] }),
  '03': () => ({ callbacks: ['truth', 'truth'] }),
  '04': () => ({ responseMode: { kind: 'after-callback' }, settleMs: 0 }),
  '05': () => ({ responseMode: { kind: 'hang' } }),
  '06': () => ({ obstacle: { tries: 1, kind: 'hang' } }),
  '07': () => ({ obstacle: { tries: 1, kind: 'http-500' } }),
  '08': () => ({ responseMode: { kind: 'http-500' } }),
  '09': () => ({ responseMode: { kind: 'bad-signature' } }),
  '10': (n = 20) => ({ responseMode: { kind: 'late', ms: n * 100 } }),
  '11': (n = 2) => ({ obstacle: { tries: n, kind: 'too-fast' } }),
  '12': () => ({ callbacks: ['truth', 'denial'] }),
  '13': () => ({ callbacks: ['forgery', 'truth'] }),
  '14': () => ({ callbacks: ['other-amount'] }),
  '15': () => ({ responseMode: { kind: 'reset' } }),
  '16': (n = 10) => ({ settleMs: n * 1000 }),
}

const MAGIC = /^99990000(\d\d)(\d\d)?/

/** What an account number asks for. Any number that is not magic is paid and called back. */
export function behaviourOf(accountNo: string): Behaviour {
  const [, code = '', n] = MAGIC.exec(accountNo) ?? []
  const special = CODES[code]
  return special ? { ...USUAL, ...special(n === undefined ? undefined : Number(n)) } : USUAL
}
