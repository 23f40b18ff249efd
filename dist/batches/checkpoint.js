import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
/** Keeps the progress of one ingest in a file, so that the same command goes on where it was interrupted. */
export class Checkpoint {
    path;
    constructor(folder, { clusterId, topic, fileHash, merchantId, batchId }) {
        const name = createHash('sha256')
            .update([clusterId, topic, fileHash, merchantId, batchId].join('\n'))
            .digest('hex');
        this.path = join(folder, `${name.slice(0, 32)}.json`);
    }
    /**
     * The progress of an earlier run over the same payable rows; null if there was none, or if other rows are
     * payable now (limits have changed): then all are published again, which pays nobody twice.
     */
    async load(payable) {
        try {
            const progress = JSON.parse(await readFile(this.path, 'utf8'));
            return progress.rows === payable.rows && progress.amount === String(payable.amount) ? progress : null;
        }
        catch (error) {
            if (error instanceof SyntaxError || error.code === 'ENOENT')
                return null;
            throw error;
        }
    }
    async save(progress) {
        await mkdir(dirname(this.path), { recursive: true });
        await writeFile(`${this.path}.partial`, JSON.stringify(progress));
        await rename(`${this.path}.partial`, this.path);
    }
}
