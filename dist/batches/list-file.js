import { open, rename, rm } from 'node:fs/promises';
import { ExpectedFailure } from "../platform/expected-failure.js";
const FLUSH_AT = 64 * 1024;
/** Before UTF-8, so that spreadsheets read names in any script. */
const MARK = '\ufeff';
/** A list beside a payroll file, as CSV for spreadsheets. It is there once it is complete, and whole. */
export class ListFile {
    path;
    #partial;
    #file;
    #waiting;
    /** Throws an ExpectedFailure, in which the list is called `name`, when it cannot be written there. */
    static async open(path, name, columns) {
        const partial = `${path}.partial`;
        try {
            return new ListFile(path, partial, await open(partial, 'w'), MARK + line(columns));
        }
        catch (error) {
            const { code } = error;
            const message = `the list of ${name}, ${path}, cannot be written (${code}): nothing is published`;
            throw new ExpectedFailure(`${message}. Let the user that runs payoutd write to that folder`, {
                cause: error,
            });
        }
    }
    constructor(path, partial, file, header) {
        this.path = path;
        this.#partial = partial;
        this.#file = file;
        this.#waiting = header;
    }
    async add(cells) {
        this.#waiting += line(cells);
        if (this.#waiting.length >= FLUSH_AT)
            await this.#flush();
    }
    /** Puts the list in the place of an older one. */
    async complete() {
        await this.#flush();
        await this.#file.close();
        await rename(this.#partial, this.path);
    }
    /** Leaves nothing behind of a list that is not complete; an older one stays. */
    async discard() {
        await this.#file.close();
        await rm(this.#partial, { force: true });
    }
    async #flush() {
        await this.#file.write(this.#waiting);
        this.#waiting = '';
    }
}
const line = (cells) => `${cells.map(cell).join(',')}\r\n`;
/** Quoted as needed; what a spreadsheet would run as a formula is made plain text. */
function cell(text) {
    const plain = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}
