import { readdirSync } from 'node:fs'
import path from 'node:path'
import { Java, type Tuning } from './java.ts'
import { fetched, type Layout } from './layout.ts'
import { SUPERUSER } from './postgres.ts'
import { type Host, ServerProcess } from './processes/process.ts'
import { end, type Server, untilReady } from './server.ts'

/** A database of the stack's own Postgres, or a file if the Postgres is given. */
export type RegistryStorage = { port: number; database: string; password: string } | 'file'

export interface RegistryOptions {
  layout: Layout
  port: number
  storage: RegistryStorage
  tuning: Tuning
}

export function registryUrl(port: number): string {
  return `http://127.0.0.1:${port}/apis/ccompat/v7`
}

/** Apicurio Registry with Confluent's API, on the loopback address only. */
export function registry(options: RegistryOptions, host: Host): Server {
  const { layout, port, storage, tuning } = options
  const java = new Java('registry', layout, tuning)
  return {
    start: async () => {
      const flags = await java.flags()
      const running = await ServerProcess.spawn(
        {
          file: java.file,
          args: [...flags, ...systemProperties(options), '-jar', runnerJar()],
          // In the environment, because everybody on the machine can read a command line.
          ...(storage !== 'file' && { env: { APICURIO_DATASOURCE_PASSWORD: storage.password } }),
        },
        path.join(layout.logs, 'registry.log'),
        'TERM',
        host,
      )
      await untilReady('registry', running, host.clock, async () => {
        return (await running.said('Listening on:')) && (await answers(`${registryUrl(port)}/subjects`))
      })
      return running
    },
    stop: async (running) => {
      if (await end(running, 'SIGTERM')) await java.ended()
    },
  }
}

function systemProperties({ layout, port, storage }: RegistryOptions): string[] {
  const file = path.join(layout.data, 'registry', 'schemas')
  const values = {
    'quarkus.http.host': '127.0.0.1',
    'quarkus.http.port': port,
    'quarkus.http.access-log.enabled': false,
    // For the line that says where it listens.
    'quarkus.log.category."io.quarkus".level': 'INFO',
    'apicurio.datasource.jdbc.initial-size': 1,
    'apicurio.datasource.jdbc.min-size': 1,
    'apicurio.datasource.jdbc.max-size': 10,
    ...(storage === 'file'
      ? // Without a write delay of 0 the schemas of the last half second are lost with a SIGKILL.
        { 'apicurio.datasource.url': `jdbc:h2:file:${file};WRITE_DELAY=0` }
      : {
          'apicurio.storage.kind': 'sql',
          'apicurio.storage.sql.kind': 'postgresql',
          'apicurio.datasource.url': `jdbc:postgresql://127.0.0.1:${storage.port}/${storage.database}`,
          'apicurio.datasource.username': SUPERUSER,
        }),
  }
  return Object.entries(values).map(([name, value]) => `-D${name}=${value}`)
}

function runnerJar(): string {
  const folder = fetched('registry')
  const jar = readdirSync(folder).find((name) => name.endsWith('-runner.jar'))
  if (!jar)
    throw new Error(`${folder} holds no runnable registry: delete it and run "node scripts/setup.mjs"`)
  return path.join(folder, jar)
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(2_000) })).ok
  } catch {
    return false
  }
}
