import type { Legs, Measurement, Spread } from '../run.ts'
import { STEADY } from '../testbed/settings.ts'
import { median, sum } from './statistics.ts'

type Line = { label: string; value: (run: Measurement) => number; digits: number }

const all = ({ cpu }: Measurement) => sum(Object.values(cpu))

const spreadLines = (label: string, of: (run: Measurement) => Spread | undefined): Line[] => [
  { label: `${label}, p50 ms`, value: (run) => of(run)?.p50 ?? Number.NaN, digits: 0 },
  { label: `${' '.repeat(label.length)}  p99 ms`, value: (run) => of(run)?.p99 ?? Number.NaN, digits: 0 },
]

const LINES: Line[] = [
  { label: 'payouts/s', value: (run) => run.payoutsPerSecond, digits: 0 },
  { label: 'CPU s per 10,000: worker', value: ({ cpu }) => cpu.worker, digits: 2 },
  { label: '                  PostgreSQL', value: ({ cpu }) => cpu.postgres, digits: 2 },
  { label: '                  Kafka', value: ({ cpu }) => cpu.kafka, digits: 2 },
  { label: '                  gateway sandbox', value: ({ cpu }) => cpu.sandbox, digits: 2 },
  { label: '                  all', value: all, digits: 2 },
  { label: 'sandbox, % of all CPU', value: (run) => (100 * run.cpu.sandbox) / all(run), digits: 0 },
  { label: 'worker, peak MB', value: (run) => run.peakMemoryMb, digits: 0 },
  { label: 'per payout: commits', value: ({ perPayout }) => perPayout.commits, digits: 3 },
  { label: '            fsyncs', value: ({ perPayout }) => perPayout.fsyncs, digits: 3 },
  { label: '            bytes of write-ahead log', value: ({ perPayout }) => perPayout.walBytes, digits: 0 },
  {
    label: '            rows written',
    value: ({ perPayout }) => sum(Object.values(perPayout.rows)),
    digits: 1,
  },
  {
    label: "            the worker's reads and writes",
    value: ({ perPayout }) => perPayout.readsAndWrites,
    digits: 1,
  },
  { label: '            garbage collected, kB', value: ({ perPayout }) => perPayout.garbageKb, digits: 0 },
  { label: '            collecting it, ms', value: ({ perPayout }) => perPayout.garbageMs, digits: 3 },
  { label: '            messages', value: ({ perPayout }) => perPayout.messages, digits: 1 },
  { label: '            their bytes on disk', value: ({ perPayout }) => perPayout.messageBytes, digits: 0 },
  ...spreadLines('backlog: callback → result', ({ backlog }) => backlog.callbackToResult),
  ...STEADY.flatMap(({ perSecond }, i) => [
    ...spreadLines(`${perSecond}/s: command → apply`, ({ steady }) => steady[i]?.commandToApply),
    ...spreadLines(`${perSecond}/s: callback → result`, ({ steady }) => steady[i]?.callbackToResult),
  ]),
]

const LEG_NAMES: Record<keyof Legs, string> = {
  commandToStored: 'command → stored',
  storedToClaimed: 'stored → claimed',
  claimedToApply: 'claimed → at the gateway',
  applyToAnswer: 'at the gateway → answer stored',
  callbackToPaid: 'callback → paid',
  paidToResult: 'paid → result on Kafka',
}

const legLines = (heading: string, of: (run: Measurement) => Legs | undefined): Line[] =>
  Object.entries(LEG_NAMES).map(([leg, name]) => ({
    label: `${heading}, ${name}`,
    value: (run) => of(run)?.[leg as keyof Legs].p50 ?? Number.NaN,
    digits: 0,
  }))

const WAYS: Line[] = [
  ...legLines('backlog', ({ backlog }) => backlog.legs),
  ...STEADY.flatMap(({ perSecond }, i) => legLines(`${perSecond}/s`, ({ steady }) => steady[i]?.legs)),
]

/** The run's figures, then the median ms of each part of a payout's way. */
export const report = (runs: readonly Measurement[]): string =>
  `${table(runs, LINES)}\n\np50 ms\n${table(runs, WAYS)}`

/** Medians of every contender, and the ratio of the first one to each other. */
function table(runs: readonly Measurement[], lines: readonly Line[]): string {
  const names = [...new Set(runs.map(({ implementation }) => implementation))]
  const [ours, ...others] = names
  const heads = ['', ...names, ...others.map((other) => `${ours} ÷ ${other}`)]
  const rows = lines.map(({ label, value, digits }) => {
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
