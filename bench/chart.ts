import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Command } from 'commander'
import type { Cpu } from './figures/cpu.ts'
import { median, sum } from './figures/statistics.ts'
import type { Measurement } from './run.ts'

/** What a contender took in one run, as a multiple of what payoutd took in the same one; null: it is no program. */
type Bar = { name: string; cpu: Cpu; payoutsPerSecond: number | null }

type Results = { runs: Measurement[] } | { floors: { micros: Cpu }[]; payoutd: Measurement }

const PARTS: Record<keyof Cpu, { label: string; color: string }> = {
  worker: { label: 'worker', color: '#3a6ea5' },
  postgres: { label: 'PostgreSQL', color: '#7aa95c' },
  kafka: { label: 'Kafka', color: '#d9a441' },
  sandbox: { label: 'gateway', color: '#a9a9a9' },
}
const KINDS = Object.keys(PARTS) as (keyof Cpu)[]
const MICROS_PER_SECOND_OF_10000 = 100

const TITLE = 'CPU per payout ÷ that of payoutd in the same run'
const [LEFT, UNIT, HEIGHT, STEP, TOP] = [150, 190, 20, 32, 64]

async function barsIn(file: string): Promise<Bar[]> {
  const results: Results = JSON.parse(await readFile(file, 'utf8'))
  if ('floors' in results) {
    const { floors, payoutd } = results
    const ofPart = (kind: keyof Cpu) =>
      sum(floors.map(({ micros }) => micros[kind])) / MICROS_PER_SECOND_OF_10000
    return [compared('each part alone', cpuOf(ofPart), null, payoutd)]
  }
  const names = [...new Set(results.runs.map(({ implementation }) => implementation))]
  const medians = new Map(names.map((name) => [name, mediansOf(name, results.runs)]))
  const ours = medians.get('payoutd')
  if (!ours) throw new Error(`${file} has no run of payoutd`)
  return [...medians].map(([name, { cpu, payoutsPerSecond }]) =>
    compared(name.replace(/^payoutd@.*/, 'payoutd e9ae50b'), cpu, payoutsPerSecond, ours),
  )
}

const cpuOf = (value: (kind: keyof Cpu) => number): Cpu => ({
  ...{ worker: value('worker'), postgres: value('postgres') },
  ...{ kafka: value('kafka'), sandbox: value('sandbox') },
})

function mediansOf(name: string, runs: readonly Measurement[]) {
  const own = runs.filter(({ implementation }) => implementation === name)
  return {
    cpu: cpuOf((kind) => median(own.map(({ cpu }) => cpu[kind]))),
    payoutsPerSecond: median(own.map(({ payoutsPerSecond }) => payoutsPerSecond)),
  }
}

function compared(
  name: string,
  cpu: Cpu,
  payoutsPerSecond: number | null,
  ours: Pick<Measurement, 'cpu' | 'payoutsPerSecond'>,
): Bar {
  const all = sum(Object.values(ours.cpu))
  return {
    name,
    cpu: cpuOf((kind) => cpu[kind] / all),
    payoutsPerSecond: payoutsPerSecond && payoutsPerSecond / ours.payoutsPerSecond,
  }
}

const lengthOf = ({ cpu }: Bar): number => sum(Object.values(cpu))

function drawn(bars: readonly Bar[]): string {
  const width = LEFT + Math.max(...bars.map(lengthOf)) * UNIT + 190
  const legend = KINDS.map((kind, i) => {
    const x = LEFT + i * 110
    return `${rectangle(x, 34, 12, 12, PARTS[kind].color)}${text(x + 18, 45, PARTS[kind].label)}`
  })
  const rows = bars.map((bar, i) => {
    const y = TOP + i * STEP
    let x = LEFT
    const pieces = KINDS.map((kind) => {
      const piece = rectangle(x, y, bar.cpu[kind] * UNIT, HEIGHT, PARTS[kind].color)
      x += bar.cpu[kind] * UNIT
      return piece
    })
    const rate = bar.payoutsPerSecond === null ? '' : ` · payouts/s × ${bar.payoutsPerSecond.toFixed(2)}`
    return `${text(8, y + 15, bar.name)}${pieces.join('')}${text(x + 8, y + 15, `${lengthOf(bar).toFixed(2)}${rate}`)}`
  })
  const height = TOP + bars.length * STEP + 8
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${Math.ceil(width)} ${height}" font-family="sans-serif" font-size="13">
<title>${TITLE}</title>
<rect width="100%" height="100%" fill="#ffffff"/>
${text(8, 20, TITLE)}
${[...legend, ...rows].join('\n')}
</svg>
`
}

const rectangle = (x: number, y: number, width: number, height: number, color: string): string =>
  `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${height}" fill="${color}"/>`

const text = (x: number, y: number, content: string): string =>
  `<text x="${x.toFixed(1)}" y="${y}" fill="#222222">${content}</text>`

await new Command('chart')
  .description('draws costs.svg: CPU per payout of each contender ÷ that of payoutd in the same run')
  .argument('<files...>', 'results of bench and bench:floors')
  .action(async (files: string[]) => {
    const bars = (await Promise.all(files.map(barsIn))).flat()
    const different = [...new Map(bars.map((bar) => [bar.name, bar])).values()]
    const file = path.join(import.meta.dirname, 'costs.svg')
    await writeFile(file, drawn(different.sort((one, other) => lengthOf(one) - lengthOf(other))))
    console.log(path.relative(process.cwd(), file))
  })
  .parseAsync()
