import { type Addresses, type DependencyFault, dependencyFaultOf } from '../platform/dependency-fault.ts'
import type { Clock } from '../platform/running/clock.ts'
import { pause } from '../platform/running/lifecycle.ts'

/**
 * The result of one check. `wrong` says what is at fault and what to do about it, `warning` what to look at though everything
 * works; `unchecked` names the check whose failure prevented this one.
 */
export type Finding =
  | { state: 'good'; what: string }
  | ({ state: 'wrong' | 'warning' } & DependencyFault)
  | { state: 'unchecked'; what: string }

export type Check = {
  name: string
  /** Runs only after the checks with these names found nothing wrong. They must come earlier in the list. */
  needs?: readonly string[]
  /** An error of a dependency becomes a finding; any other error does too, with its own message. */
  run: () => Promise<Finding>
}

export type CheckResult = { name: string; finding: Finding; tookMs: number }

export const good = (what: string): Finding => ({ state: 'good', what })
export const wrong = (what: string, todo: string): Finding => ({ state: 'wrong', what, todo })
export const warning = (what: string, todo: string): Finding => ({ state: 'warning', what, todo })

export type ExamineOptions = {
  addresses: Addresses
  /** The time limit of one check, in ms. */
  limitMs: number
  clock: Clock
  /** Receives each finding in the order of the list, with the names of the checks that are still under way. */
  onFound: (found: CheckResult, left: string[]) => void
}

/** Runs all checks at once, each within its time limit; none hides another. Reports and returns in the order of the list. */
export async function examine(checks: readonly Check[], options: ExamineOptions): Promise<CheckResult[]> {
  const { clock, onFound } = options
  const left = new Set(checks.map(({ name }) => name))
  const running = new Map<string, Promise<CheckResult>>()
  for (const check of checks) {
    const needed = (check.needs ?? []).map((name) => running.get(name))
    running.set(
      check.name,
      (async () => {
        const blocking = (await Promise.all(needed)).find(
          (found) => found?.finding.state === 'wrong' || found?.finding.state === 'unchecked',
        )
        const began = clock.monotonic()
        const finding: Finding = blocking
          ? { state: 'unchecked', what: `not checked: it needs "${blocking.name}"` }
          : await limited(check, options)
        const found = { name: check.name, finding, tookMs: Math.round(clock.monotonic() - began) }
        left.delete(check.name)
        return found
      })(),
    )
  }
  const all: CheckResult[] = []
  for (const one of running.values()) {
    const found = await one
    onFound(found, [...left])
    all.push(found)
  }
  return all
}

async function limited({ run }: Check, { limitMs, addresses }: ExamineOptions): Promise<Finding> {
  const over = new AbortController()
  try {
    return await Promise.race([
      run(),
      pause(limitMs, over.signal).then(() =>
        wrong(`no answer within ${limitMs / 1000} s`, 'check that it runs and that payoutd can reach it'),
      ),
    ])
  } catch (error) {
    const dependencyFault = dependencyFaultOf(error, addresses)
    if (dependencyFault) return { state: 'wrong', ...dependencyFault }
    const message = error instanceof Error ? error.message : String(error)
    return wrong(`the check itself failed: ${message}`, 'this should not happen: report it, with this line')
  } finally {
    over.abort()
  }
}
