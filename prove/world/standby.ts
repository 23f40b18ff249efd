import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, openSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { asUnprivileged, postgresProgram } from '../../devkit/local/servers/postgres-binaries.ts'
import { withSession } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { freePorts } from './proc.ts'
import { Wire } from './wire.ts'

/** An asynchronous standby of a Postgres, which streams from it through its own wire. */
export class Standby {
  readonly url: string
  readonly #primaryUrl: string
  readonly #process: ChildProcess
  readonly #wire: Wire

  private constructor(url: string, primaryUrl: string, process: ChildProcess, wire: Wire) {
    this.url = url
    this.#primaryUrl = primaryUrl
    this.#process = process
    this.#wire = wire
  }

  /** `dataDir` is that of the primary; the copy is made while the primary works. */
  static async of(primaryUrl: string, dataDir: string): Promise<Standby> {
    const copy = `${dataDir}-standby`
    const label = await withSession(primaryUrl, async (session) => {
      await session.query("select pg_backup_start('standby', fast => true)")
      // Keeps the owner: Postgres accepts only its owner's data.
      execFileSync('cp', ['-a', dataDir, copy])
      const { rows } = await session.query('select labelfile from pg_backup_stop(wait_for_archive => false)')
      return rows[0].labelfile as string
    })
    const { hostname, port, username, password } = new URL(primaryUrl)
    const wire = await Wire.to(`${hostname}:${port}`)
    const conninfo = `host=127.0.0.1 port=${wire.port} user=${username} password=${password}`
    rmSync(path.join(copy, 'postmaster.pid'))
    writeFileSync(path.join(copy, 'backup_label'), label)
    writeFileSync(path.join(copy, 'standby.signal'), '')
    appendFileSync(path.join(copy, 'postgresql.auto.conf'), `primary_conninfo = '${conninfo}'\n`)
    const [own] = await freePorts(1)
    const args = [
      '-D',
      copy,
      '-p',
      `${own}`,
      '-c',
      'listen_addresses=127.0.0.1',
      '-c',
      'unix_socket_directories=',
    ]
    const command = asUnprivileged(
      { file: postgresProgram('postgres'), args: [...args, '-c', 'max_connections=200'] },
      dataDir,
    )
    const out = openSync(`${copy}.log`, 'a')
    const child = spawn(command.file, command.args, { stdio: ['ignore', out, out] })
    const url = new URL(primaryUrl)
    url.port = `${own}`
    const standby = new Standby(url.href, primaryUrl, child, wire)
    await eventually('the standby to catch up', () => standby.hasCaughtUp().catch(() => false))
    return standby
  }

  async hasCaughtUp(): Promise<boolean> {
    const behind = `select count(*)::int as count from pg_stat_replication
      where state = 'streaming' and replay_lsn >= pg_current_wal_lsn()`
    const { rows } = await withSession(this.#primaryUrl, (session) => session.query(behind))
    return rows[0].count === 1
  }

  /** Nothing more of the primary reaches it. */
  cutOff(): void {
    this.#wire.down()
  }

  async promote(): Promise<void> {
    await withSession(this.url, (session) => session.query('select pg_promote(true, 30)'))
  }

  async stop(): Promise<void> {
    await this.#wire.close()
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      this.#process.kill('SIGINT')
      await once(this.#process, 'exit')
    }
  }
}
