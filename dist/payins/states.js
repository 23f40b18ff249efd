/** The states of a payin. */
export const PAYIN_STATES = ['creating', 'unknown', 'open', 'review', 'paid', 'failed', 'expired'];
/**
 * | state | meaning |
 * |---|---|
 * | creating | the intent is committed; bytes may be on the wire |
 * | unknown | nobody can say yet whether the gateway has the order |
 * | open | the gateway has it and waits for the payer |
 * | review | the gateway contradicts itself or never answered: a person looks; good evidence still settles it |
 * | paid | the gateway says that the payer paid |
 * | failed | the gateway says so, or is proved not to have the order |
 * | expired | nobody had paid when payoutd stopped asking |
 */
const LEAVES_TO = {
    creating: ['open', 'unknown', 'paid', 'failed'],
    unknown: ['open', 'review', 'paid', 'failed'],
    open: ['review', 'paid', 'failed', 'expired'],
    review: ['open', 'paid', 'failed'],
    paid: [],
    failed: ['paid'],
    expired: ['paid'],
};
export const mayMove = (from, to) => LEAVES_TO[from].includes(to);
export const isEnd = (state) => state === 'paid' || state === 'failed' || state === 'expired';
