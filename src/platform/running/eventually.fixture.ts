import { setTimeout as delay } from 'node:timers/promises'

/** Waits until the condition holds; gives up after `withinMs` and names the condition. */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  withinMs = 60_000,
): Promise<void> {
  const giveUp = performance.now() + withinMs
  while (!(await condition())) {
    if (performance.now() > giveUp) throw new Error(`waited in vain for: ${what}`)
    await delay(20)
  }
}
