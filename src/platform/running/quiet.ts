/**
 * How many ms a loop waits that has found nothing for `quietMs`; `often`: at first. A loop is woken for what its own process commits,
 * so only what other processes commit, and what time alone makes due, waits that long.
 */
export function quietPause(quietMs: number, often: number): number {
  if (quietMs > 60_000) return Math.max(often, 1_000)
  return quietMs > 2_000 ? Math.max(often, 250) : often
}
