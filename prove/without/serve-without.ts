import { SAFEGUARDS } from '../../src/app/safeguards.ts'
import { type Role, startPayoutd } from '../../src/app/start.ts'
import { readConfig } from '../../src/config/config.ts'
import { createLogger } from '../../src/platform/log.ts'
import { WITHOUT } from './safeguards.ts'

/** payoutd without one of its safeguards: `node prove/without/serve-without.ts 'lease check before sending' intake,dispatch`. */
const [name = '', roles = ''] = process.argv.slice(2)
const missing = WITHOUT[name]
if (!missing) throw new Error(`there is no safeguard "${name}"`)
const config = readConfig(process.env)
const log = createLogger({ name: 'payoutd', level: config.logLevel })
await startPayoutd(config, new Set(roles.split(',') as Role[]), log, {
  ...SAFEGUARDS,
  ...missing.put(SAFEGUARDS),
})
