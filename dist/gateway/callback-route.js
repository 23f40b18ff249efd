/** Callbacks beyond this many unanswered ones are turned away: the gateway comes again. */
const MOST_WAITING = 5_000;
/**
 * Receives callbacks at a URL: POST and GET, parameters in the query string (gateway contract, "Events"). Only
 * what is stored is answered `success`. Bad signature 401, unknown merchant 404, a body 415, store down or too
 * much at once 503.
 */
export function receiveCallbacks(server, { url, readers, store, answered }) {
    let inHand = 0;
    async function answer(merchantId, rawQuery) {
        const read = readers.get(merchantId);
        if (!read)
            return { status: 404, text: 'unknown merchant' };
        if (inHand >= MOST_WAITING)
            return { status: 503, text: 'busy, come again' };
        const verdict = read(rawQuery);
        if (verdict.kind === 'bad-signature')
            return { status: 401, text: 'bad signature' };
        if (verdict.kind === 'malformed')
            return { status: 400, text: `malformed: ${verdict.why}` };
        inHand++;
        try {
            const stored = await store(merchantId, verdict.report);
            return stored ? { status: 200, text: 'success' } : { status: 503, text: 'not stored, come again' };
        }
        finally {
            inHand--;
        }
    }
    server.register((scope, _options, done) => {
        // A callback with a body is 415: what it says there is signed by nobody.
        scope.removeAllContentTypeParsers();
        scope.route({
            method: ['GET', 'POST'],
            url,
            handler: async (request, reply) => {
                const { merchantId } = request.params;
                const rawQuery = request.raw.url?.split('?', 2)[1] ?? '';
                const { status, text } = await answer(merchantId, rawQuery);
                const known = readers.has(merchantId) ? merchantId : 'unknown';
                answered.inc({ merchant: known, answer: String(status) });
                return reply.code(status).type('text/plain').send(text);
            },
        });
        done();
    });
}
