import { existsSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import type { Clock } from '../../../src/platform/running/clock.ts'
import type { Tuning } from './java.ts'
import type { Layout } from './layout.ts'
import { asUnprivileged, postgresProgram } from './postgres-binaries.ts'
import { type Host, ServerProcess } from './processes/process.ts'
import { end, type Server, ServerFailed, untilReady } from './server.ts'

export interface PostgresOptions {
  layout: Layout
  port: number
  password: string
  /** Created if missing. */
  databases: string[]
  tuning: Tuning
}

export const SUPERUSER = 'postgres'

/** The address of one of its databases, with the superuser's password. */
export function postgresUrl(options: PostgresOptions, database: string): string {
  return `postgres://${SUPERUSER}:${options.password}@127.0.0.1:${options.port}/${database}`
}

/** PostgreSQL 18 with its durable defaults, on the loopback address only. */
export function postgres(options: PostgresOptions, host: Host): Server {
  const dataDir = path.join(options.layout.data, 'postgres')
  return {
    start: async () => {
      if (!existsSync(dataDir)) await createCluster(dataDir, options, host)
      return pastOrphans(host.clock, () => run(dataDir, options, host))
    },
    // INT is its fast shutdown: unlike TERM, it does not wait for clients.
    stop: async (running) => void (await end(running, 'SIGINT')),
  }
}

async function run(dataDir: string, options: PostgresOptions, host: Host): Promise<ServerProcess> {
  const args = ['-D', dataDir, '-p', String(options.port), ...settings(options.tuning)]
  const command = asUnprivileged({ file: postgresProgram('postgres'), args }, dataDir)
  const logFile = path.join(options.layout.logs, 'postgres.log')
  const running = await ServerProcess.spawn(command, logFile, 'INT', host)
  await untilReady('postgres', running, host.clock, async () => {
    if (!(await answers(postgresUrl(options, 'postgres')))) return false
    await createDatabases(options)
    return true
  })
  return running
}

/** After a SIGKILL PostgreSQL refuses to start until the old backends have noticed that their parent is gone. */
async function pastOrphans(clock: Clock, start: () => Promise<ServerProcess>): Promise<ServerProcess> {
  const deadline = clock.monotonic() + 30_000
  for (;;) {
    try {
      return await start()
    } catch (error) {
      const orphans =
        error instanceof ServerFailed && error.message.includes('pre-existing shared memory block')
      if (!orphans || clock.monotonic() > deadline) throw error
    }
    await delay(100)
  }
}

function settings(tuning: Tuning): string[] {
  const all = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '200',
    ...(tuning === 'bench' && { shared_buffers: '512MB', max_wal_size: '4GB' }),
  }
  return Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

/** Created beside its place and moved there when whole, so that an interrupted first start can be repeated. */
async function createCluster(dataDir: string, { layout, password }: PostgresOptions, host: Host) {
  const unfinished = `${dataDir}.unfinished`
  const passwordFile = path.join(layout.data, 'postgres.password')
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(layout.data, { recursive: true })
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 })
  try {
    const args = [
      `--pgdata=${unfinished}`,
      `--username=${SUPERUSER}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
    ]
    const logFile = path.join(layout.logs, 'initdb.log')
    const command = asUnprivileged({ file: postgresProgram('initdb'), args }, unfinished)
    const initdb = await ServerProcess.spawn(command, logFile, 'TERM', host)
    const how = await initdb.exited
    if (how !== 'ended with code 0')
      throw await ServerFailed.of('postgres', `could not be set up: initdb ${how}`, logFile)
  } finally {
    await rm(passwordFile, { force: true })
  }
  await rename(unfinished, dataDir)
}

async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url })
  try {
    await client.connect()
    return true
  } catch {
    return false
  } finally {
    await client.end()
  }
}

async function createDatabases(options: PostgresOptions): Promise<void> {
  const client = new Client({ connectionString: postgresUrl(options, 'postgres') })
  await client.connect()
  try {
    const { rows } = await client.query<{ datname: string }>('select datname from pg_database')
    const present = rows.map((row) => row.datname)
    for (const name of options.databases) {
      if (!present.includes(name)) await client.query(`create database ${client.escapeIdentifier(name)}`)
    }
  } finally {
    await client.end()
  }
}
