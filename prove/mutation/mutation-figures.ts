import path from 'node:path'

/** What the tests made of the mutants of one file, or of one group of files. */
export type MutationFigures = {
  file: string
  mutants: number
  killed: number
  /** Mutants that never came to an end: found out, too. */
  timeout: number
  /** All others: the tests passed, none of them came by, or the mutant could not even be loaded. */
  survived: number
  /** Of all mutants those found out, in per cent, cut to a tenth. */
  score: number
}

/** What one group came to when it was last run; prove/results/mutation.json has one of each. */
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

/** The figures of several files as those of one. */
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
