import { globSync } from 'node:fs'
import path from 'node:path'

export const root = path.resolve(import.meta.dirname, '..')
export const GUIDES = [
  'README.md',
  'CONTRIBUTING.md',
  'docs/index.md',
  ...['tutorial', 'how-to', 'reference', 'explanation'].flatMap((kind) =>
    globSync(`docs/${kind}/*.md`, { cwd: root }).sort(),
  ),
]

type Line = { at: string; text: string }

/**
 * The lines inside ``` fences without another language (```text, ```json). A line that ends in a backslash
 * continues in the next.
 */
export function codeLines(file: string, text: string): Line[] {
  const lines: Line[] = []
  let fence: string | null = null
  let begun: Line | null = null
  text.split('\n').forEach((line, i) => {
    const [, named] = /^\s*```(\w*)/.exec(line) ?? []
    if (named !== undefined) {
      fence = fence === null ? named : null
      return
    }
    if (fence !== '' && fence !== 'sh') return
    const whole: Line = begun
      ? { ...begun, text: `${begun.text} ${line.trim()}` }
      : { at: `${file}:${i + 1}`, text: line.trim().replace(/^\$ /, '') }
    begun = whole.text.endsWith('\\') ? { ...whole, text: whole.text.slice(0, -1).trim() } : null
    if (!begun) lines.push(whole)
  })
  return lines
}

/** Splits words as a shell does: quotes hold one together, and ` # ` or a redirection ends the command. */
export function wordsOf(text: string): string[] {
  const words = [...text.matchAll(/"[^"]*"|'[^']*'|\S+/g)].map(([word]) => word)
  const end = words.findIndex((word) => /^(#|[<>|&;]$)/.test(word))
  return words.slice(0, end < 0 ? words.length : end)
}
