import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { CASES } from '../devkit/lab/conformance/suite.ts'

const docs = path.resolve(import.meta.dirname, '..', 'docs')

/** The rows of the tables in docs/contract.md. The test reads only links and text in backticks. */
const rows = readFileSync(path.join(docs, 'contract.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('|') && !/^\|( \| rule|---)/.test(line))
  .map((line) => {
    const [, what = '', , client = '', sandbox = '', cases = ''] = line.split('|').map((cell) => cell.trim())
    return {
      what,
      client,
      sandbox,
      cases: [...cases.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string),
    }
  })
const filesIn = (cell: string): string[] =>
  [...cell.matchAll(/\]\(([^)#]+)/g)].map(([, file]) => file as string)

describe('docs/contract.md', () => {
  test('has a case in every row, and every case in a row', () => {
    const named = rows.flatMap(({ cases }) => cases)
    const existing = CASES.map(({ name }) => name)
    assert.deepEqual(
      rows.filter(({ cases }) => cases.length === 0),
      [],
    )
    assert.deepEqual([...new Set(named)].sort(), existing.sort())
  })

  test('points at a file of the client and one of the sandbox, or says that nothing is done', () => {
    for (const { what, client, sandbox } of rows) {
      for (const cell of [client, sandbox]) {
        const files = filesIn(cell)
        assert.ok(files.length > 0 || /^not (read|kept)$/.test(cell), `${what}: ${cell}`)
        for (const file of files) assert.ok(existsSync(path.join(docs, file)), `${what}: there is no ${file}`)
      }
      assert.ok(filesIn(client).length + filesIn(sandbox).length > 0, what)
    }
  })

  test('a field is named in a file that its row points at, on each side', () => {
    for (const { what, client, sandbox } of rows) {
      const [, field] = /^`(\w+)`$/.exec(what) ?? []
      if (field === undefined) continue
      for (const files of [filesIn(client), filesIn(sandbox)]) {
        const texts = files.map((file) => readFileSync(path.join(docs, file), 'utf8'))
        assert.ok(
          files.length === 0 || texts.some((text) => new RegExp(`\\b${field}\\b`).test(text)),
          `${field} stands in none of ${files.join(', ')}`,
        )
      }
    }
  })
})
