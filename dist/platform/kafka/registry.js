import { SchemaRegistry, SchemaType } from '@kafkajs/confluent-schema-registry';
import avro from 'avsc';
import { fullName, typeHook } from "./avro.js";
const TIMEOUT_MS = 5_000;
/** The registry's own words for "no such subject" and "no such schema"; any other 404 comes from something in between. */
const SUBJECT_NOT_FOUND = 40401;
const SCHEMA_NOT_FOUND = 40403;
export const subjectName = ({ topic, schema }) => `${topic}-${fullName(schema)}`;
/** A client of a registry that speaks the Confluent API at `url`. Connects with the first call. */
export function connectRegistry({ url, auth }) {
    const host = url.replace(/\/$/, '');
    const ask = requester(host, auth);
    const client = new SchemaRegistry({ host, clientId: 'payoutd', middlewares: [withTimeout], ...(auth && { auth }) }, { [SchemaType.AVRO]: { typeHook } });
    return {
        async register(subject) {
            const name = subjectName(subject);
            try {
                await ensureCompatibility(ask, name, subject.compatibility);
                const { id } = await client.register({ type: SchemaType.AVRO, schema: subject.text }, { subject: name, compatibility: subject.compatibility });
                return id;
            }
            catch (error) {
                const reason = error instanceof Error ? error.message : String(error);
                throw new Error(statusOf(error) === 409
                    ? `schema registry refuses the schema of ${name}, which must stay ${subject.compatibility}: ${reason}`
                    : `schema registry at ${host} could not register ${name}: ${reason}`, { cause: error });
            }
        },
        async lookUp(subject) {
            const name = subjectName(subject);
            const { status, body } = await ask('POST', `/subjects/${encodeURIComponent(name)}`, {
                schemaType: 'AVRO',
                schema: subject.text,
            }).catch((error) => {
                throw new Error(`schema registry at ${host} could not be asked for ${name}`, { cause: error });
            });
            if (status === 200 && typeof body.id === 'number')
                return body.id;
            if (status === 404 && (body.error_code === SUBJECT_NOT_FOUND || body.error_code === SCHEMA_NOT_FOUND))
                return null;
            throw new Error(`schema registry at ${host} could not look ${name} up: ${body.message ?? `HTTP ${status}`}`);
        },
        async writerSchema(id, subjects) {
            const asked = `schema registry at ${host} could not be asked for schema ${id}`;
            const under = await subjectsOf(ask, id).catch((error) => {
                throw new Error(asked, { cause: error });
            });
            if (under === null)
                return 'unknown';
            if (!under.some((name) => subjects.has(name)))
                return 'foreign';
            try {
                const schema = await client.getSchema(id);
                return avro.Type.isType(schema) ? schema : 'unreadable';
            }
            catch (error) {
                if (statusOf(error) === undefined)
                    return 'unreadable';
                throw new Error(asked, { cause: error });
            }
        },
    };
}
/** Without it the client waits for ever for a registry that accepts connections and never answers. */
const withTimeout = () => ({
    prepareRequest: async (next) => (await next()).enhance({ timeout: TIMEOUT_MS }),
});
/** The client's errors carry the HTTP status (400 for a lost connection); errors of parsing carry none. */
const statusOf = (error) => error instanceof Error && 'status' in error && typeof error.status === 'number' ? error.status : undefined;
/** For what the client does not offer. Throws when there is no answer; an answer without JSON has an empty body. */
function requester(host, auth) {
    const headers = { 'content-type': 'application/vnd.schemaregistry.v1+json' };
    if (auth) {
        const credentials = Buffer.from(`${auth.username}:${auth.password}`).toString('base64');
        headers.authorization = `Basic ${credentials}`;
    }
    return async (method, path, body) => {
        const response = await fetch(host + path, {
            method,
            headers,
            signal: AbortSignal.timeout(TIMEOUT_MS),
            ...(body && { body: JSON.stringify(body) }),
        });
        const parsed = await response.json().catch(() => null);
        const isObject = typeof parsed === 'object' && parsed !== null;
        return { status: response.status, body: isObject ? parsed : {} };
    };
}
/**
 * Before the first schema, so that none is ever accepted under a weaker rule. The client would set it
 * afterwards, and take a subject that another process is just creating for one with other settings.
 */
async function ensureCompatibility(ask, subject, wanted) {
    const path = `/config/${encodeURIComponent(subject)}`;
    const isSet = async () => (await ask('GET', path)).body.compatibilityLevel === wanted;
    if (await isSet())
        return;
    const { status, body } = await ask('PUT', path, { compatibility: wanted });
    // Several processes may set it at once; the registry then refuses all but one of them.
    if (status >= 300 && !(await isSet())) {
        throw new Error(`compatibility ${wanted} could not be set: ${body.message ?? `HTTP ${status}`}`);
    }
}
/**
 * The subjects under which a schema is registered, also where that was withdrawn since; null: there is no such id.
 * The body says so, and not the 404 alone: that may come from a proxy that does not know the registry, and
 * dead-lettering everything then would be a disaster.
 */
async function subjectsOf(ask, id) {
    const { status, body } = await ask('GET', `/schemas/ids/${id}/versions?deleted=true`);
    if (status === 404 && body.error_code === SCHEMA_NOT_FOUND)
        return null;
    if (status !== 200 || !Array.isArray(body))
        throw new Error(`HTTP ${status}`);
    return body.map(({ subject }) => subject);
}
