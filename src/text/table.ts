/** Lines of cells, indented, each column as wide as its widest cell; `>` aligns a column to the right. */
export function table(lines: readonly (readonly string[])[], align: readonly ('' | '>')[]): string[] {
  const widths = align.map((_, column) =>
    lines.reduce((widest, line) => Math.max(widest, [...(line[column] ?? '')].length), 0),
  )
  return lines.map((line) =>
    align
      .map((side, column) => {
        const text = line[column] ?? ''
        const space = ' '.repeat((widths[column] ?? 0) - [...text].length)
        return side === '>' ? space + text : text + space
      })
      .join('  ')
      .replace(/^/, '  ')
      .trimEnd(),
  )
}

/** 1000000 → 10,00,000, as India reads numbers. */
export const count = (number: number): string => number.toLocaleString('en-IN')
