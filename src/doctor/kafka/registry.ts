import { FIND_SCHEMAS, lostIds } from '../../ledger/schema-ids.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import {
  connectRegistry,
  type RegistryConnection,
  type SchemaSubject,
  subjectName,
} from '../../platform/registry/registry.ts'
import { withoutLastSlashes } from '../../text/text.ts'
import { type Check, type Finding, good, wrong } from '../examine.ts'

export function registryChecks(
  connection: RegistryConnection,
  subjects: readonly SchemaSubject[],
  address: string,
  db: Database,
): Check[] {
  const api = registryApi(connection)
  return [
    { name: 'schema registry', run: async () => checkRegistry(await api.get('/config'), address) },
    {
      name: 'schemas',
      needs: ['schema registry'],
      run: async () => checkSchemas(await Promise.all(subjects.map((subject) => lookUp(api, subject)))),
    },
    {
      name: 'schema ids',
      needs: ['schema registry', 'migrations'],
      run: async () => checkIds(await lostIds(connectRegistry(connection), db, subjects)),
    },
  ]
}

/** Null: it could not be reached. */
type RegistryState = { status: number; body: Record<string, unknown> } | null
type Api = {
  get: (path: string) => Promise<RegistryState>
  post: (path: string, body: object) => Promise<RegistryState>
}

/**
 * Only reads. The client library cannot: its one way to look a schema up registers it. Source: the Confluent API, "Subjects" and
 * "Config".
 */
function registryApi({ url, auth }: RegistryConnection): Api {
  const base = withoutLastSlashes(url)
  const headers: Record<string, string> = { 'content-type': 'application/vnd.schemaregistry.v1+json' }
  if (auth) {
    headers.authorization = `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`
  }
  const ask = async (path: string, request: RequestInit): Promise<RegistryState> => {
    try {
      const response = await fetch(base + path, { ...request, headers })
      const body: unknown = await response.json().catch(() => null)
      return {
        status: response.status,
        body: typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {},
      }
    } catch {
      return null
    }
  }
  return {
    get: (path) => ask(path, {}),
    post: (path, body) => ask(path, { method: 'POST', body: JSON.stringify(body) }),
  }
}

function checkRegistry(answer: RegistryState, address: string): Finding {
  if (!answer) {
    return wrong(
      `the schema registry at ${address} does not answer`,
      'start it, or correct SCHEMA_REGISTRY_URL',
    )
  }
  if (answer.status === 401 || answer.status === 403) {
    return wrong(
      `the schema registry at ${address} refuses the user or the password`,
      'correct SCHEMA_REGISTRY_USERNAME and SCHEMA_REGISTRY_PASSWORD',
    )
  }
  if (answer.status !== 200 || !('compatibilityLevel' in answer.body)) {
    return wrong(
      `${address} answers HTTP ${answer.status}, but is not a schema registry`,
      'correct SCHEMA_REGISTRY_URL: it must lead to the Confluent API (for Apicurio: …/apis/ccompat/v7)',
    )
  }
  return good(`the schema registry at ${address} answers`)
}

const checkIds = (lost: readonly string[]): Finding =>
  lost.length === 0
    ? good('the registry has the schemas under the ids that the ledger noted')
    : wrong(lost.join('; '), FIND_SCHEMAS)

type LookedUp = { subject: string; registered: boolean; wanted: string; compatibility: string | null }

async function lookUp(api: Api, subject: SchemaSubject): Promise<LookedUp> {
  const name = encodeURIComponent(subjectName(subject))
  const [schema, config] = await Promise.all([
    api.post(`/subjects/${name}`, { schemaType: 'AVRO', schema: subject.text }),
    api.get(`/config/${name}`),
  ])
  const level = config?.status === 200 ? config.body.compatibilityLevel : null
  return {
    subject: subjectName(subject),
    registered: schema?.status === 200,
    wanted: subject.compatibility,
    compatibility: typeof level === 'string' ? level : null,
  }
}

export function checkSchemas(found: readonly LookedUp[]): Finding {
  const missing = found.filter(({ registered }) => !registered)
  if (missing.length > 0) {
    return wrong(
      `the registry lacks this version's schema of ${missing.map(({ subject }) => subject).join(', ')}`,
      'run payoutd migrate, which reports a schema that the registry refuses',
    )
  }
  const other = found.filter(({ wanted, compatibility }) => compatibility !== wanted)
  if (other.length > 0) {
    const faults = other.map(
      ({ subject, wanted, compatibility }) =>
        `${subject} has compatibility ${compatibility ?? 'of the registry'} instead of ${wanted}`,
    )
    return wrong(
      faults.join('; '),
      'run payoutd migrate, which sets it so that schema changes cannot break readers',
    )
  }
  return good(`${found.length} schemas are registered, with their compatibility`)
}
