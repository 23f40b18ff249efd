import { closeSync, openSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { SCHEMA, SCHEMA_VERSION } from './schema.ts'

type Commit = { promise: Promise<void>; resolve: () => void; reject: (error: unknown) => void }

/**
 * The state file, written in groups: all writes within `groupMs` of the first share one transaction, and
 * `committed()` resolves when it is in the file.
 *
 * A commit is in the operating system's hands, so killing the process loses nothing; a power cut may lose the last
 * moments (synchronous=NORMAL: an fsync per group would hold up every request behind it).
 */
export class Store {
  readonly #db: DatabaseSync
  readonly #groupMs: number
  readonly #beforeCommit: (() => void)[] = []
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  #open: Commit | undefined
  #timer: NodeJS.Timeout | undefined
  #broken: { cause: unknown } | undefined

  constructor(file: string, groupMs: number) {
    // The file contains the merchants' keys.
    closeSync(openSync(file, 'a', 0o600))
    this.#db = new DatabaseSync(file)
    this.#groupMs = groupMs
    try {
      this.#db.exec('pragma locking_mode=exclusive')
      const isNew = this.#isNew()
      this.#db.exec('pragma journal_mode=wal; pragma synchronous=normal')
      this.#db.exec('pragma wal_autocheckpoint=4000; pragma cache_size=-65536')
      if (isNew) this.#db.exec(`begin; ${SCHEMA}; pragma user_version=${SCHEMA_VERSION}; commit`)
    } catch (error) {
      this.#db.close()
      throw new Error(`the state file ${file} ${whyUnusable(error)}`, { cause: error })
    }
    this.#begin = this.#db.prepare('begin immediate')
    this.#commit = this.#db.prepare('commit')
  }

  /** Integers come back as bigint: amounts may use all 63 bits. */
  prepare(sql: string): StatementSync {
    const statement = this.#db.prepare(sql)
    statement.setReadBigInts(true)
    return statement
  }

  /** Runs `work` inside every group's transaction, just before it is committed. */
  beforeCommit(work: () => void): void {
    this.#beforeCommit.push(work)
  }

  /**
   * Runs `work` inside the open group's transaction. If it throws, nothing of the group is kept and the store stays
   * unusable: memory no longer agrees with the file, and only a restart reads the file again.
   */
  write<T>(work: () => T): T {
    this.#refuseIfBroken()
    try {
      if (!this.#open) {
        this.#begin.run()
        this.#open = newCommit()
        this.#timer = setTimeout(() => this.flush(), this.#groupMs)
      }
      return work()
    } catch (error) {
      this.#break(error)
      throw error
    }
  }

  /** Resolves once everything written so far is in the file. */
  async committed(): Promise<void> {
    this.#refuseIfBroken()
    await this.#open?.promise
  }

  /** Commits the open group now. */
  flush(): void {
    const open = this.#open
    if (!open) return
    clearTimeout(this.#timer)
    try {
      for (const work of this.#beforeCommit) work()
      this.#commit.run()
      this.#open = undefined
      open.resolve()
    } catch (error) {
      this.#break(error)
    }
  }

  close(): void {
    if (!this.#broken) this.flush()
    this.#db.close()
  }

  /** Whether the file is empty. Throws, without any change, if it contains anything but this version's tables. */
  #isNew(): boolean {
    const tables = this.#db
      .prepare(`select count(*) as n, sum(name in ('merchants', 'movements')) as ours from sqlite_schema`)
      .get()
    if (tables?.n === 0) return true
    if (tables?.ours !== 2) throw new Error("is an SQLite file, but no sandbox's")
    const version = this.#db.prepare('pragma user_version').get()?.user_version
    if (version === SCHEMA_VERSION) return false
    throw new Error(`is of another version of the sandbox: ${version}, where this one has ${SCHEMA_VERSION}`)
  }

  #break(cause: unknown): void {
    clearTimeout(this.#timer)
    this.#broken ??= { cause }
    if (this.#db.isTransaction) this.#db.exec('rollback')
    this.#open?.reject(cause)
    this.#open = undefined
  }

  #refuseIfBroken(): void {
    if (this.#broken) throw new Error('the state file could not be written', { cause: this.#broken.cause })
  }
}

/** SQLite's primary result codes: the lowest byte of the code it reports. */
const SQLITE_BUSY = 5
const SQLITE_NOTADB = 26

function whyUnusable(error: unknown): string {
  const { errcode, message } = error as Error & { errcode?: number }
  if (errcode === undefined) return message
  switch (errcode & 0xff) {
    case SQLITE_BUSY:
      return 'is in use by another sandbox, or another program'
    case SQLITE_NOTADB:
      return 'is no SQLite file'
    default:
      return `cannot be used: ${message}`
  }
}

function newCommit(): Commit {
  const commit = Promise.withResolvers<void>()
  // Waiters see the failure; without any, the store is broken all the same.
  commit.promise.catch(() => undefined)
  return commit
}
