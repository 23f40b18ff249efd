import { Presets, SingleBar } from 'cli-progress';
/** How far the asking is, on a terminal. */
export class Bar {
    #shown;
    #bar;
    constructor(shown) {
        this.#shown = shown;
    }
    show(asked, listed) {
        if (!this.#shown)
            return;
        if (!this.#bar) {
            const format = 'asking  {bar} {value} of {total}  {eta_formatted}';
            this.#bar = new SingleBar({ format, stream: process.stderr, clearOnComplete: true }, Presets.shades_classic);
            this.#bar.start(listed, asked);
        }
        this.#bar.update(asked);
    }
    end() {
        this.#bar?.stop();
    }
}
