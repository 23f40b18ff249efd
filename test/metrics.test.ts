import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { ROLES, startPayoutd } from '../src/app/start.ts'
import { readConfig } from '../src/config/config.ts'
import { migrateAll } from '../src/ledger/tables/migrate-all.ts'
import { silentLogger } from '../src/platform/log.ts'
import { root } from './command-lines.ts'
import { freshDatabase } from './database.ts'
import { testEnvironment } from './ledger.ts'

/** Those of the process, from prom-client. */
const OF_PROCESS = /^payoutd_(process|nodejs)_/

test('docs/reference/metrics.md lists every metric with its help text', async (t) => {
  const config = readConfig(testEnvironment(await freshDatabase(t)))
  await migrateAll(config, silentLogger)
  const running = await startPayoutd(config, new Set(ROLES), silentLogger)
  t.after(() => running.stop())
  const served = await (await fetch(`${running.internalUrl}/metrics`)).text()
  const lines = Array.from(
    served.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)$/gm),
    ([, name, help, type]) => ({
      name: String(name),
      row: [`\`${name}\``, type, help],
    }),
  )
  const wanted = lines.filter(({ name }) => !OF_PROCESS.test(name)).map(({ row }) => row)
  const page = readFileSync(path.join(root, 'docs/reference/metrics.md'), 'utf8')
  const listed = page
    .split('\n')
    .filter((line) => line.startsWith('| `payoutd_'))
    .map((line) => line.slice(2, -2).split(' | '))
    .map(([name, type, , help]) => [name, type, help])
  assert.deepEqual(listed.sort(), wanted.sort())
})
