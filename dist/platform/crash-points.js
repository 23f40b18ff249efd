/**
 * The moments around everything that leaves a process: a commit, a request or an answer to one, a publish.
 * The prover ends or freezes a process at each of them; without a watcher they do nothing.
 */
export const MOMENTS = [
    'before commit',
    'after commit',
    'before send',
    'after send',
    'before publish',
    'after publish',
];
let watcher;
/** Calls `watch` at every moment of this process from now on, with the name that its caller gave it. */
export function watchCrashPoints(watch) {
    watcher = watch;
}
/** A process that is killed here has done everything before this line and nothing after it. */
export function crashPoint(moment, name) {
    watcher?.(moment, name);
}
