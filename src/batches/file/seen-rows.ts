import { createSecretKey } from 'node:crypto'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { PayoutCommand } from '../../domain/commands/command.ts'
import { fingerprint } from '../../domain/identifiers.ts'
import { hash64 } from '../payout-ids.ts'

/** These hashes are compared within one file and never leave the machine, so the key need not be secret. */
const KEY = createSecretKey(Buffer.alloc(32, 'payroll file'))

/** SQLite calls a database without a name temporary: what its cache cannot hold goes to a file that it deletes. */
const TEMPORARY = ''
const SCHEMA = `
  pragma cache_size = -4096;
  pragma journal_mode = off;
  create table seen (reference integer primary key, content integer, row integer not null);
  begin`

/**
 * Remembers the rows of a file by reference and content, in 4 MB of memory however long the file is. Two references share all 64
 * bits of their hash once in 37 million files of a million rows; then the content differs, and a row is refused needlessly.
 */
export class SeenRows {
  readonly #db = new DatabaseSync(TEMPORARY)
  readonly #add: StatementSync
  readonly #find: StatementSync

  constructor() {
    this.#db.exec(SCHEMA)
    this.#add = this.#db.prepare('insert into seen values (?, ?, ?) on conflict do nothing')
    this.#find = this.#db.prepare('select row, content is ? as same from seen where reference = ?')
  }

  /**
   * Returns null for a new reference, and remembers it. Otherwise returns the row that had it first, and whether the content (who
   * gets how much) is the same.
   */
  meet(command: PayoutCommand, row: number): { row: number; same: boolean } | null {
    const reference = hash64(command.payoutId)
    const content = fingerprint(command, KEY).readBigInt64LE()
    if (this.#add.run(reference, content, row).changes === 1) return null
    const first = this.#find.get(content, reference) as { row: number; same: number }
    return { row: first.row, same: first.same === 1 }
  }

  /** Remembers a refused row by its reference: nobody knows which of two rows is right, so no content counts as the same. */
  refuse(payoutId: string, row: number): void {
    this.#add.run(hash64(payoutId), null, row)
  }

  close(): void {
    this.#db.close()
  }
}
