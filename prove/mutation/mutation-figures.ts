import path from 'node:path'

/** The tests' results for the mutants of one file, or of one group of files. */
export type MutationFigures = {
  file: string
  mutants: number
  killed: number
  /** Mutants that never ended: they count as detected. */
  timeout: number
  /** All others: the tests passed, no test reached the mutant, or it could not be loaded. */
  survived: number
  /** The share of detected mutants, in per cent, cut to a tenth. */
  score: number
}

/** One group's latest result; prove/results/mutation.json has one per group. */
export type MutationResult = {
  group: string
  ranAt: string
  seconds: number
  node: string
  files: MutationFigures[]
}

/** The figures of each file, from every mutant that Stryker tried. */
export function figuresOf(mutants: readonly { fileName: string; status: string }[]): MutationFigures[] {
  const byFile = Object.entries(Object.groupBy(mutants, ({ fileName }) => path.relative('.', fileName)))
  return byFile.map(([file, of = []]) => {
    const tried = of.filter(({ status }) => status !== 'Ignored')
    const killed = tried.filter(({ status }) => status === 'Killed').length
    const timeout = tried.filter(({ status }) => status === 'Timeout').length
    return counted(file, tried.length, killed, timeout)
  })
}

/** The combined figures of several files. */
export function together(name: string, files: readonly MutationFigures[]): MutationFigures {
  const sum = (of: (file: MutationFigures) => number) => files.reduce((all, file) => all + of(file), 0)
  return counted(
    name,
    sum(({ mutants }) => mutants),
    sum(({ killed }) => killed),
    sum(({ timeout }) => timeout),
  )
}

const counted = (file: string, mutants: number, killed: number, timeout: number): MutationFigures => ({
  ...{ file, mutants, killed, timeout, survived: mutants - killed - timeout },
  score: Math.floor((1000 * (killed + timeout)) / mutants) / 10,
})
