import { createHttpServer } from "../platform/http.js";
import { parseForm, parseJson, UnreadableForm } from "./form.js";
/** A client that never gives up must not keep a connection for ever. */
const LONGEST_HANG_MS = 300_000;
const WRONG_TYPE = 'the content-type must be application/x-www-form-urlencoded or application/json, as the dialect says';
/** The sandbox's HTTP server, not listening yet: a POST to any path that is no page's may be an operation. */
export function createSandboxServer(gateway, log) {
    const server = createHttpServer();
    const hanging = new Set();
    server.removeAllContentTypeParsers();
    server.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, async (_request, body) => parseForm(body, 'form'));
    server.addContentTypeParser('application/json', { parseAs: 'string' }, async (_request, body) => parseJson(body));
    server.setErrorHandler((error, _request, reply) => {
        const { statusCode, message } = error;
        if (statusCode) {
            const retMsg = statusCode === 415 ? WRONG_TYPE : message;
            return reply.code(statusCode).send({ retCode: 'PARAM_ERROR', retMsg, sign: '' });
        }
        log.error({ err: error }, 'a request failed');
        return reply.code(500).send({ retCode: 'SYSTEM_ERROR', retMsg: 'see the log of the sandbox', sign: '' });
    });
    server.post('*', async (request, reply) => {
        const [path = ''] = request.url.split('?', 1);
        const answer = await gateway.answer(path, formOf(request));
        if (answer === undefined)
            return reply.callNotFound();
        if (typeof answer === 'object') {
            return reply
                .code(answer.status)
                .header('content-type', answer.body.startsWith('{') ? 'application/json; charset=utf-8' : 'text/plain')
                .send(answer.body);
        }
        reply.hijack();
        if (answer === 'reset')
            request.raw.socket.resetAndDestroy();
        else
            hang(request.raw.socket, hanging);
        return undefined;
    });
    server.addHook('preClose', async () => {
        for (const socket of hanging)
            socket.destroy();
    });
    return server;
}
/** What a request gives in its body, or in the query string where that is where it gives something. */
function formOf({ body, url }) {
    const query = url.indexOf('?');
    if (query === -1)
        return body ?? parseForm('', 'form');
    if (body && !isEmpty(body))
        throw new UnreadableForm('parameters came in the body and in the query string');
    return parseForm(url.slice(query + 1), 'query');
}
const isEmpty = ({ params, repeated }) => Object.keys(params).length === 0 && repeated.length === 0;
/** Keeps a connection without an answer until the client gives up, or the sandbox stops. */
function hang(socket, hanging) {
    hanging.add(socket);
    socket.once('close', () => hanging.delete(socket));
    socket.setTimeout(LONGEST_HANG_MS, () => socket.destroy());
}
