import { createSecretKey, hash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { fingerprint } from "../payout/identifiers.js";
/** These hashes are compared within one file and never leave the machine, so the key need not be secret. */
const KEY = createSecretKey(Buffer.alloc(32, 'payroll file'));
/** SQLite calls a database without a name temporary: it keeps what its cache cannot hold in a file that it deletes. */
const TEMPORARY = '';
const SCHEMA = `
  pragma cache_size = -4096;
  pragma journal_mode = off;
  create table seen (reference integer primary key, content integer not null, row integer not null);
  begin`;
/**
 * Remembers the rows of a file by reference and content, in 4 MB of memory however long the file is. Two
 * references share all 64 bits of their hash once in 37 million files of a million rows, and then the content
 * differs: a row is refused that need not be.
 */
export class SeenRows {
    #db = new DatabaseSync(TEMPORARY);
    #add;
    #find;
    constructor() {
        this.#db.exec(SCHEMA);
        this.#add = this.#db.prepare('insert into seen values (?, ?, ?) on conflict do nothing');
        this.#find = this.#db.prepare('select row, content = ? as same from seen where reference = ?');
    }
    /**
     * Null for a reference that is new, which is then remembered. Otherwise the row that had it first, and
     * whether the content (who gets how much) is the same.
     */
    meet(command, row) {
        const reference = hash('sha256', command.payoutId, 'buffer').readBigInt64LE();
        const content = fingerprint(command, KEY).readBigInt64LE();
        if (this.#add.run(reference, content, row).changes === 1)
            return null;
        const first = this.#find.get(content, reference);
        return { row: first.row, same: first.same === 1 };
    }
    close() {
        this.#db.close();
    }
}
