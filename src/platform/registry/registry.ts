import type { SchemaRegistry } from '@kafkajs/confluent-schema-registry'
import avro from 'avsc'
import { type AvroSchema, fullName, typeHook } from './avro.ts'

export type Compatibility = 'BACKWARD_TRANSITIVE' | 'FULL_TRANSITIVE'

/**
 * A record that may be written to a topic, and how its schema may change: TopicRecordNameStrategy. `text` is the
 * schema as in its file: registries compare the text, so a client that builds with the file finds it.
 */
export type SchemaSubject = { topic: string; schema: AvroSchema; text: string; compatibility: Compatibility }

export type RegistryConnection = { url: string; auth?: { username: string; password: string } }

const TIMEOUT_MS = 5_000
/** The registry's own codes for "no such subject", "version" and "schema"; any other 404 comes from something in between. */
const SUBJECT_NOT_FOUND = 40401
const VERSION_NOT_FOUND = 40402
const SCHEMA_NOT_FOUND = 40403
const NOT_FOUND: readonly unknown[] = [SUBJECT_NOT_FOUND, VERSION_NOT_FOUND, SCHEMA_NOT_FOUND]

export const subjectName = ({ topic, schema }: Pick<SchemaSubject, 'topic' | 'schema'>): string =>
  `${topic}-${fullName(schema)}`

export type NoWriterSchema = 'unknown' | 'foreign' | 'unreadable'

export interface Registry {
  /**
   * Registers the schema under its subject, sets the subject's compatibility, and returns the schema's id. The same
   * schema returns the same id again, even from several processes at once. Throws if the registry refuses it
   * (naming the subject and the reason) or does not answer.
   */
  register(subject: SchemaSubject): Promise<number>
  /**
   * The id of exactly this schema under its subject; null: it is not registered there. Throws if the registry
   * cannot tell: a RegistryAway if it is away.
   */
  lookUp(subject: SchemaSubject): Promise<number | null>
  /**
   * The schema that a writer used. It must be registered under one of `subjects`, and so has kept that subject's
   * compatibility. `unknown`: the registry says that this id, or a schema to which it refers, does not exist. `foreign`: it exists
   * only under other subjects. `unreadable`: it is not valid Avro. Throws if the registry cannot tell: then nothing is known.
   */
  writerSchema(id: number, subjects: ReadonlySet<string>): Promise<avro.Type | NoWriterSchema>
}

/** A client of a registry that speaks the Confluent API at `url`. Connects on the first call. */
export function connectRegistry({ url, auth }: RegistryConnection): Registry {
  const host = url.replace(/\/$/, '')
  const ask = requester(host, auth)
  let registering: ReturnType<typeof openClient> | undefined
  return {
    async register(subject) {
      const name = subjectName(subject)
      registering ??= openClient({ host, ...(auth && { auth }) })
      try {
        await ensureCompatibility(ask, name, subject.compatibility)
        const { client, SchemaType } = await registering
        const { id } = await client.register(
          { type: SchemaType.AVRO, schema: subject.text },
          { subject: name, compatibility: subject.compatibility as never },
        )
        return id
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        throw new Error(
          statusOf(error) === 409
            ? `schema registry refuses the schema of ${name}, which must stay ${subject.compatibility}: ${reason}`
            : `schema registry at ${host} could not register ${name}: ${reason}`,
          { cause: error },
        )
      }
    },
    async lookUp(subject) {
      const name = subjectName(subject)
      const { status, body } = await ask('POST', `/subjects/${encodeURIComponent(name)}`, {
        schemaType: 'AVRO',
        schema: subject.text,
      }).catch((error: unknown) => {
        throw new RegistryAway(`schema registry at ${host} could not be asked for ${name}`, { cause: error })
      })
      if (status === 200 && typeof body.id === 'number') return body.id
      if (status === 404 && NOT_FOUND.includes(body.error_code)) return null
      throw new (isAway(status, body) ? RegistryAway : Error)(
        `schema registry at ${host} could not look ${name} up: ${body.message ?? `HTTP ${status}`}`,
      )
    },
    async writerSchema(id, subjects) {
      try {
        const under = await subjectsOf(ask, id)
        if (under === null) return 'unknown'
        const isOurs =
          under === 'denied'
            ? await isRegisteredUnder(ask, id, subjects)
            : under.some((name) => subjects.has(name))
        if (!isOurs) return 'foreign'
        const texts = await schemasAt(ask, `/schemas/ids/${id}`)
        return texts ? readable(texts) : 'unknown'
      } catch (error) {
        throw new RegistryAway(`schema registry at ${host} could not be asked for schema ${id}`, {
          cause: error,
        })
      }
    },
  }
}

/** The registry could not be asked for a schema. */
export class RegistryAway extends Error {}

/** Its own store is away (5xx), it has no time (408, 429), or something before it answers: that has no code of the registry. */
const isAway = (status: number, body: RegistryAnswer['body']): boolean =>
  status >= 500 ||
  [408, 429].includes(status) ||
  (![401, 403].includes(status) && typeof body.error_code !== 'number')

/** Loaded only by who registers: it brings the parsers of two more kinds of schemas with it. */
async function openClient(to: { host: string; auth?: RegistryConnection['auth'] & {} }) {
  const { SchemaRegistry, SchemaType } = await import('@kafkajs/confluent-schema-registry')
  const client = new SchemaRegistry(
    { ...to, clientId: 'payoutd', middlewares: [withTimeout] },
    { [SchemaType.AVRO]: { typeHook } },
  )
  return { client, SchemaType }
}

type Middleware = NonNullable<ConstructorParameters<typeof SchemaRegistry>[0]['middlewares']>[number]

/** Without it the client waits for ever for a registry that accepts connections and never answers. */
const withTimeout: Middleware = () => ({
  prepareRequest: async (next) => (await next()).enhance({ timeout: TIMEOUT_MS }),
})

/** The client's errors carry the HTTP status (400 for a lost connection); parsing errors carry none. */
const statusOf = (error: unknown): number | undefined =>
  error instanceof Error && 'status' in error && typeof error.status === 'number' ? error.status : undefined

type RegistryAnswer = { status: number; body: Record<string, unknown> }
type Ask = (method: 'GET' | 'PUT' | 'POST', path: string, body?: object) => Promise<RegistryAnswer>

/**
 * For requests that the client does not offer. Throws if there is no answer; an answer without JSON has an empty
 * body.
 */
function requester(host: string, auth: RegistryConnection['auth']): Ask {
  const headers: Record<string, string> = { 'content-type': 'application/vnd.schemaregistry.v1+json' }
  if (auth) {
    const credentials = Buffer.from(`${auth.username}:${auth.password}`).toString('base64')
    headers.authorization = `Basic ${credentials}`
  }
  return async (method, path, body) => {
    const response = await fetch(host + path, {
      method,
      headers,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body && { body: JSON.stringify(body) }),
    })
    const parsed: unknown = await response.json().catch(() => null)
    const isObject = typeof parsed === 'object' && parsed !== null
    return { status: response.status, body: isObject ? (parsed as Record<string, unknown>) : {} }
  }
}

/**
 * Runs before the first schema, so that the registry never accepts one under a weaker rule. The client would set
 * compatibility afterwards, and mistake a subject that another process is creating for one with other settings.
 */
async function ensureCompatibility(ask: Ask, subject: string, wanted: Compatibility): Promise<void> {
  const path = `/config/${encodeURIComponent(subject)}`
  const isSet = async () => (await ask('GET', path)).body.compatibilityLevel === wanted
  if (await isSet()) return
  const { status, body } = await ask('PUT', path, { compatibility: wanted })
  // Several processes may set it at once; the registry then refuses all but one of them.
  if (status >= 300 && !(await isSet())) {
    throw new Error(`compatibility ${wanted} could not be set: ${body.message ?? `HTTP ${status}`}`)
  }
}

/**
 * The subjects under which a schema is or was registered; null: there is no such id; `denied`: payoutd may not read them all. The
 * body must say so: a 404 alone may come from a proxy that does not know the registry, and dead-lettering everything then would be a
 * disaster.
 */
async function subjectsOf(ask: Ask, id: number): Promise<string[] | null | 'denied'> {
  const { status, body } = await ask('GET', `/schemas/ids/${id}/versions?deleted=true`)
  if (status === 404 && body.error_code === SCHEMA_NOT_FOUND) return null
  if (status === 403 && typeof body.error_code === 'number') return 'denied'
  if (status !== 200 || !Array.isArray(body)) throw new Error(`HTTP ${status}`)
  return body.map(({ subject }: { subject: string }) => subject)
}

/** The same question, to a registry that answers only about subjects that payoutd may read. Throws unless it answers about all. */
async function isRegisteredUnder(ask: Ask, id: number, subjects: ReadonlySet<string>): Promise<boolean> {
  for (const subject of subjects) {
    const path = `/subjects/${encodeURIComponent(subject)}/versions`
    const { status, body } = await ask('GET', `${path}?deleted=true`)
    if (status === 404 && body.error_code === SUBJECT_NOT_FOUND) continue
    if (status !== 200 || !Array.isArray(body)) throw new Error(`HTTP ${status}`)
    for (const version of body) {
      const found = await ask('GET', `${path}/${version}?deleted=true`)
      if (found.status !== 200 || typeof found.body.id !== 'number') throw new Error(`HTTP ${found.status}`)
      if (found.body.id === id) return true
    }
  }
  return false
}

/** The most schemas that one schema may include by reference. */
const MOST_SCHEMAS = 20

/**
 * The text of a schema, after the texts of all that it refers to, by path; null: the registry says that one of them is gone. Throws
 * unless the registry itself returns a schema: an answer that is cut off or comes from a proxy proves nothing. Does not use the
 * client, which waits for ever for the rest of an answer that was cut off.
 */
async function schemasAt(
  ask: Ask,
  path: string,
  found = new Map<string, string>(),
): Promise<ReadonlyMap<string, string> | null> {
  if (found.has(path) || found.size === MOST_SCHEMAS) return found
  const { status, body } = await ask('GET', path)
  if (status === 404 && NOT_FOUND.includes(body.error_code)) return null
  if (status !== 200 || typeof body.schema !== 'string') throw new Error(`HTTP ${status}, and no schema`)
  found.set(path, '')
  for (const { subject, version } of (body.references ?? []) as { subject: string; version: number }[]) {
    const reference = `/subjects/${encodeURIComponent(subject)}/versions/${version}?deleted=true`
    if ((await schemasAt(ask, reference, found)) === null) return null
  }
  found.delete(path)
  return found.set(path, body.schema)
}

function readable(texts: ReadonlyMap<string, string>): avro.Type | 'unreadable' {
  try {
    const registry = {}
    const types = [...texts.values()].map((text) =>
      avro.Type.forSchema(JSON.parse(text), { typeHook, registry }),
    )
    return types.at(-1) as avro.Type
  } catch {
    return 'unreadable'
  }
}
