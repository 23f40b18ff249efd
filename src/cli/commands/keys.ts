import { Command } from 'commander'
import { type Config, readConfig } from '../../config/config.ts'
import { recordAct } from '../../ledger/acts.ts'
import { type KeyPair, proveKeys } from '../../operators/key-proofs.ts'
import { type Census, censusOfKeys, retireKeys, rotateKeys, unusedKeys } from '../../operators/rotate-keys.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { isComplete, previewText, type Rotation, rotationText } from '../../views/rotate-text.ts'
import { type ActReport, confirmed, type DecisionOptions, reportDone, withDecision } from '../decision.ts'
import { rateOf } from '../options/rate-of.ts'
import { withDatabase } from '../with-database.ts'

type RotateCommandOptions = DecisionOptions & { rate?: number; retire?: true }

const INTERRUPTED = 130

const rotate = withDecision(
  new Command('rotate').description(
    'encrypt every bank detail, stored callback and dead letter with the newest key of ENCRYPTION_KEYS; you can interrupt it, and payoutd can run at the same time',
  ),
)
  .option('--rate <count/s>', 'the most records to encrypt per second', rateOf)
  .option(
    '--retire',
    'afterwards retire former keys that nothing is encrypted with, so that payoutd starts without them',
  )
  .action(async (options: RotateCommandOptions) => {
    const config = readConfig(process.env)
    await withDatabase(config, async (db) => {
      const { current } = config.sealing
      const before = await censusOfKeys(db)
      const would: ActReport = {
        text: previewText(before, current, options.retire ?? false),
        json: { current, sealed: Object.fromEntries(before) },
      }
      if (!(await confirmed(would, options))) return
      const rotation = await run(db, config, options)
      reportDone({ text: rotationText(rotation), json: flat(rotation) }, options)
      process.exitCode = rotation.interrupted ? INTERRUPTED : isComplete(rotation) ? 0 : 1
    })
  })

export const keysCommand = new Command('keys').addCommand(rotate)

async function run(db: Database, config: Config, options: RotateCommandOptions): Promise<Rotation> {
  const { by, reason, rate, retire } = options
  const keys: KeyPair = { sealing: config.sealing, fingerprint: config.fingerprintKey }
  await proveKeys(db, keys)
  const subjects = [`key ${keys.sealing.current}`]
  const before = counts(await censusOfKeys(db))
  const act = { command: 'keys rotate', by, reason, merchantId: null, subjects, before }
  await recordAct(db, { ...act, after: null })
  const abort = new AbortController()
  const stop = () => abort.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  try {
    const rotated = await rotateKeys(db, keys.sealing, {
      rate: rate ?? null,
      clock: systemClock,
      signal: abort.signal,
      onProgress,
    })
    const census = rotated.interrupted ? new Map() : await censusOfKeys(db)
    await recordAct(db, { ...act, after: flat({ ...rotated, census }) })
    const unused = rotated.interrupted ? [] : await unusedKeys(db, keys.sealing, census)
    const retired = retire === true && unused.length > 0
    if (retired) await retireKeys(db, unused, { by, reason })
    return { current: keys.sealing.current, ...rotated, census, unused, retired }
  } finally {
    if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
    process.off('SIGINT', stop).off('SIGTERM', stop)
  }
}

function onProgress(lookedAt: number, resealed: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${lookedAt} checked, ${resealed} encrypted again`)
}

const flat = <Found extends Pick<Rotation, 'unopened' | 'census'>>({
  unopened,
  census,
  ...rotation
}: Found) => ({
  ...rotation,
  unopened: counts(unopened),
  sealed: counts(census),
})
const counts = (census: Census): Record<string, number> => Object.fromEntries(census)
