import { existsSync } from 'node:fs'
import path from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { pathOf } from '../../src/cli/options/path-of.ts'
import { note, print } from '../../src/cli/print.ts'
import { createLogger } from '../../src/platform/log.ts'
import { systemClock } from '../../src/platform/running/clock.ts'
import { Lifecycle } from '../../src/platform/running/lifecycle.ts'
import { addressBlock } from './demo/addresses.ts'
import { PhaseTeller } from './demo/bars.ts'
import { payAndCheck } from './demo/demo.ts'
import { figuresJson } from './demo/figures.ts'
import { type Installation, type OnStep, startInstallation } from './demo/installation.ts'
import { Interrupted, interruption, untilAborted } from './demo/interruption.ts'
import { type PayrollChoice, placePayroll } from './demo/payroll-file.ts'
import { report } from './demo/report.ts'
import { stepTeller } from './demo/steps.ts'

const DIR = path.join('.payoutd', 'demo')
const INTERRUPTED = 130

type DemoOptions = PayrollChoice & { keep?: true; json?: true }

/** `payoutd demo`. Exit codes: 0 everything balances, 1 it does not or could not be checked, 130 interrupted. */
export const demoCommand = new Command('demo')
  .description(
    'pay a payroll in which many things go wrong, on servers of its own, and compare every row with ' +
      'what payoutd published and with the ledger of the gateway',
  )
  .option('--rows <n>', 'pay a generated payroll of this many rows', rows)
  .option('--file <csv>', 'pay this payroll file', existing)
  .option('--keep', 'leave everything up at the end, until Ctrl-C')
  .option('--json', 'print the outcome as one line of JSON, amounts in paise; everything else goes to stderr')
  .action(async (options: DemoOptions) => {
    try {
      process.exitCode = (await demo(options, interruption())) ? 0 : 1
    } catch (error) {
      if (!(error instanceof Interrupted)) throw error
      process.exitCode = INTERRUPTED
    }
  })

/** Whether everything balances. */
async function demo(options: DemoOptions, interrupted: AbortSignal): Promise<boolean> {
  const clock = systemClock
  const log = createLogger({ name: 'demo', level: 'fatal', destination: 2 })
  const lifecycle = new Lifecycle(log)
  const signal = AbortSignal.any([interrupted, lifecycle.signal])
  const teller = new PhaseTeller(clock)
  const began = clock.monotonic()
  try {
    note(`starting servers and payoutd in ${DIR}`)
    const onStep = quietAtTheEnd(stepTeller(clock), interrupted)
    const installation = await teller.run('starting', () =>
      startInstallation({ dir: DIR, fresh: true, ports: 'any', given: {}, log, onStep, signal }),
    )
    lifecycle.own('installation', () => installation.stop())

    const { payrollPath, name } = await placePayroll(options, path.join(DIR, 'data', 'payroll'))
    note(`paying ${name}`)
    const outcome = await Promise.race([
      payAndCheck(installation, payrollPath, { teller, lifecycle, clock, log, signal }),
      installation.payoutd.unexpectedEnd,
    ])
    const balanced = outcome.discrepancies.length === 0
    const text = `\n${report({ ...outcome, file: name, phases: teller.phases })}\n`
    if (options.json) note(text)
    print(options.json ? figuresJson(outcome.figures, balanced, clock.monotonic() - began) : text)
    if (options.keep) await keep(installation, interrupted)
    return balanced
  } finally {
    await lifecycle.stop()
  }
}

/** Reports stopping only to a person who waits for it. */
const quietAtTheEnd =
  (tell: OnStep, interrupted: AbortSignal): OnStep =>
  (step, state) => {
    if (state !== 'stopped' || interrupted.aborted) tell(step, state)
  }

async function keep(installation: Installation, interrupted: AbortSignal): Promise<void> {
  note(`everything stays up, Ctrl-C stops it\n${addressBlock(installation)}\n`)
  try {
    await Promise.race([untilAborted(interrupted), installation.payoutd.unexpectedEnd])
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error
  }
}

function existing(given: string): string {
  const file = pathOf(given)
  if (!existsSync(file)) throw new InvalidArgumentError('There is no such file.')
  return file
}

function rows(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError('It must be a whole number up to 9999999.')
  return Number(text)
}
