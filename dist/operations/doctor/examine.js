import { pause } from "../../platform/lifecycle.js";
import { troubleOf } from "../dependency-trouble.js";
export const good = (what) => ({ state: 'good', what });
export const wrong = (what, todo) => ({ state: 'wrong', what, todo });
export const warning = (what, todo) => ({ state: 'warning', what, todo });
/** Runs all checks at once, each within its time; none hides another. Tells and answers in the order of the list. */
export async function examine(checks, options) {
    const { clock, onFound } = options;
    const left = new Set(checks.map(({ name }) => name));
    const running = new Map();
    for (const check of checks) {
        const needed = (check.needs ?? []).map((name) => running.get(name));
        running.set(check.name, (async () => {
            const blocking = (await Promise.all(needed)).find((found) => found?.finding.state !== 'good');
            const began = clock.monotonic();
            const finding = blocking
                ? { state: 'unchecked', what: `not checked: it needs "${blocking.name}"` }
                : await limited(check, options);
            const found = { name: check.name, finding, tookMs: Math.round(clock.monotonic() - began) };
            left.delete(check.name);
            return found;
        })());
    }
    const all = [];
    for (const one of running.values()) {
        const found = await one;
        onFound(found, [...left]);
        all.push(found);
    }
    return all;
}
async function limited({ run }, { limitMs, addresses }) {
    const over = new AbortController();
    try {
        return await Promise.race([
            run(),
            pause(limitMs, over.signal).then(() => wrong(`no answer within ${limitMs / 1000} s`, 'see whether it runs and the way to it is open')),
        ]);
    }
    catch (error) {
        const trouble = troubleOf(error, addresses);
        if (trouble)
            return { state: 'wrong', ...trouble };
        const message = error instanceof Error ? error.message : String(error);
        return wrong(`the check itself failed: ${message}`, 'this should not happen: report it, with this line');
    }
    finally {
        over.abort();
    }
}
