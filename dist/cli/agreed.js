import { createInterface } from 'node:readline/promises';
/** Asks on the terminal; anything but y or yes is a no. Ctrl-C and Ctrl-D end the process: nothing has begun. */
export async function agreed(question) {
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    try {
        return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
    }
    catch (error) {
        if (!(error instanceof Error && error.name === 'AbortError'))
            throw error;
        console.error('\nnothing was done');
        process.exit(130);
    }
    finally {
        terminal.close();
    }
}
