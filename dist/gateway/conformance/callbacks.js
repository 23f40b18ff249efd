import { EventEmitter, once } from 'node:events';
import { createHttpServer, listen } from "../../platform/http.js";
import { readingsOf } from "../signed-query.js";
/** `url` is how the server reaches this door, where that is not the address it listens on. */
export async function openCallbacks(settings) {
    const { port, url, clock } = settings;
    const arrived = [];
    const news = new EventEmitter();
    const server = createHttpServer();
    server.removeAllContentTypeParsers();
    server.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
    server.route({
        method: ['GET', 'POST'],
        url: '/conformance/:manner',
        handler: async ({ params, raw, method, body }, reply) => {
            const query = raw.url?.split('?', 2)[1] ?? '';
            arrived.push({ at: clock.now(), method, query, body: body ?? '' });
            news.emit('arrived');
            const refused = params.manner !== 'success';
            return reply
                .code(refused ? 500 : 200)
                .type('text/plain')
                .send(refused ? 'refused' : 'success');
        },
    });
    const address = await listen(server, { host: url === null ? '127.0.0.1' : '0.0.0.0', port });
    const about = (mchOrderNo) => arrived.filter(({ query }) => parametersOf(query)?.get('mchOrderNo') === mchOrderNo);
    return {
        urlOf: (manner) => `${(url ?? address).replace(/\/+$/, '')}/conformance/${manner}`,
        about,
        async wait(mchOrderNo, count, patienceMs) {
            const signal = AbortSignal.timeout(patienceMs);
            while (about(mchOrderNo).length < count && !signal.aborted) {
                await once(news, 'arrived', { signal }).catch((error) => {
                    if (!signal.aborted)
                        throw error;
                });
            }
            return about(mchOrderNo);
        },
        close: () => server.close(),
    };
}
/** The parameters of a query string; null where it has no meaning. */
export function parametersOf(query) {
    const [first] = readingsOf(query);
    return typeof first === 'object' ? first : null;
}
