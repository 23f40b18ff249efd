import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { analyse } from 'scslre'
import ts from 'typescript'

/** A pattern of the product that some text keeps busy for longer than its length; `line` counts from 1. */
type SlowPattern = { line: number; pattern: string; why: string }

const WHY = {
  Self: 'a repetition can match the same text in more than one way',
  Trade: 'two repetitions can trade places over the same text',
  Move: 'a repetition at its beginning is tried again from every place in the text',
}
const FROM_TEXT = 'it is made from a text, and cannot be checked'

/** Every pattern in the code of one file that takes more than linear time, or cannot be shown to take no more. */
export function slowPatterns(code: string): SlowPattern[] {
  const source = ts.createSourceFile('code.ts', code, ts.ScriptTarget.Latest, true)
  const found: SlowPattern[] = []
  const visit = (node: ts.Node): void => {
    const why = whyOf(node)
    if (why !== null) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart())
      found.push({ line: line + 1, pattern: node.getText(), why })
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function whyOf(node: ts.Node): string | null {
  if (ts.isRegularExpressionLiteral(node)) {
    const end = node.text.lastIndexOf('/')
    const literal = { source: node.text.slice(1, end), flags: node.text.slice(end + 1) }
    const [report] = analyse(literal, { reportTypes: { Move: true } }).reports
    return report ? WHY[report.type] : null
  }
  const isCall = ts.isNewExpression(node) || ts.isCallExpression(node)
  return isCall && node.expression.getText() === 'RegExp' ? FROM_TEXT : null
}

if (import.meta.main) {
  const root = path.resolve(import.meta.dirname, '..')
  const files = globSync('src/**/*.ts', { cwd: root }).filter((file) => !/\.(test|fixture)\.ts$/.test(file))
  for (const file of files.sort()) {
    for (const { line, pattern, why } of slowPatterns(readFileSync(path.join(root, file), 'utf8'))) {
      console.error(`${file}:${line}  ${pattern}: ${why}`)
      process.exitCode = 1
    }
  }
}
