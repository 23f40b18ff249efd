import { parseArgs } from 'node:util'
import { writeExample } from '../devkit/local/example/files.ts'

/**
 * Writes an example payroll and what must become of it. Without options: the committed one.
 *
 *   npm run examples -- [--rows 1000] [--out examples/payroll-2026-11.csv] [--seed 202611]
 */
const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000' },
    out: { type: 'string', default: 'examples/payroll-2026-11.csv' },
    seed: { type: 'string', default: '202611' },
  },
})
const makeup = await writeExample(values.out, Number(values.rows), Number(values.seed))
console.log(
  `${values.out}: ${makeup.rows} rows, of which ${makeup.rejected} refused, ${makeup.duplicates} repeated, ${makeup.failed} failing`,
)
