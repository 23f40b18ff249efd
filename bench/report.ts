import type { Measurement } from './run.ts'
import { STEADY } from './settings.ts'
import { median } from './statistics.ts'

type Line = { label: string; value: (run: Measurement) => number; digits: number }

const all = ({ cpu }: Measurement) => cpu.worker + cpu.postgres + cpu.kafka + cpu.sandbox

const LINES: Line[] = [
  { label: 'payouts/s', value: (run) => run.payoutsPerSecond, digits: 0 },
  { label: 'CPU s per 10,000: worker', value: ({ cpu }) => cpu.worker, digits: 2 },
  { label: '                  PostgreSQL', value: ({ cpu }) => cpu.postgres, digits: 2 },
  { label: '                  Kafka', value: ({ cpu }) => cpu.kafka, digits: 2 },
  { label: '                  gateway sandbox', value: ({ cpu }) => cpu.sandbox, digits: 2 },
  { label: '                  all', value: all, digits: 2 },
  { label: 'sandbox, % of all CPU', value: (run) => (100 * run.cpu.sandbox) / all(run), digits: 0 },
  { label: 'worker, peak MB', value: (run) => run.peakMemoryMb, digits: 0 },
  {
    label: 'backlog: callback → result, p50 ms',
    value: (run) => run.backlog.callbackToResult.p50,
    digits: 0,
  },
  {
    label: '                            p99 ms',
    value: (run) => run.backlog.callbackToResult.p99,
    digits: 0,
  },
  {
    label: `${STEADY.perSecond}/s: command → apply, p50 ms`,
    value: (run) => run.steady.commandToApply.p50,
    digits: 0,
  },
  { label: '                        p99 ms', value: (run) => run.steady.commandToApply.p99, digits: 0 },
  { label: '       callback → result, p50 ms', value: (run) => run.steady.callbackToResult.p50, digits: 0 },
  { label: '                          p99 ms', value: (run) => run.steady.callbackToResult.p99, digits: 0 },
]

/** Medians of every contender, and the ratio of the first one to each other. */
export function table(runs: readonly Measurement[]): string {
  const names = [...new Set(runs.map(({ implementation }) => implementation))]
  const [ours, ...others] = names
  const heads = ['', ...names, ...others.map((other) => `${ours} ÷ ${other}`)]
  const rows = LINES.map(({ label, value, digits }) => {
    const medians = names.map((name) => medianOf(runs, name, value))
    const ratios = medians.slice(1).map((other) => ((medians[0] as number) / other).toFixed(2))
    return [label, ...medians.map((each) => format(each, digits)), ...ratios]
  })
  const widths = heads.map((_, i) => Math.max(...[heads, ...rows].map((row) => (row[i] as string).length)))
  const text = (row: string[]) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] as number) : cell.padStart(widths[i] as number)))
  return [heads, ...rows].map((row) => text(row).join('  ')).join('\n')
}

const medianOf = (runs: readonly Measurement[], name: string, value: Line['value']) =>
  median(runs.filter(({ implementation }) => implementation === name).map(value))

const format = (value: number, digits: number) =>
  value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
