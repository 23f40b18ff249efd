import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadDialect } from '../../../gateway/dialect/dialect-file.ts'
import { payoutd, payoutdAlone } from '../../cli.fixture.ts'
import { signatureOf } from './sign.ts'

type SignVector = { key: string; params: object; sign: string }

const vectors: SignVector[] = JSON.parse(
  readFileSync(new URL('../../../../test/sign-vectors.json', import.meta.url), 'utf8'),
)
const { sign: rules } = loadDialect('default')
const md5 = (text: string) => createHash('md5').update(text).digest('hex').toUpperCase()

test('each line of stdin gets its signature, in the order of the lines', async () => {
  const lines = vectors.map(({ key, params }) => JSON.stringify({ key, params }))
  const { code, stdout } = await payoutdAlone(['gateway', 'sign'], {}, lines.join('\n'))
  assert.equal(code, 0)
  assert.deepEqual(
    stdout.trimEnd().split('\n'),
    vectors.map(({ sign }) => sign),
  )
})

test('values are signed as written, whatever JSON would make of them', () => {
  const line = '{"key":"k","params":{"a":12345678901234567890,"b":1e2,"c":{"d": 1},"e":null,"sign":"x"}}'
  assert.equal(signatureOf(line, rules), md5('a=12345678901234567890&b=1e2&c={"d": 1}&key=k'))
})

test('a line that is not one key and its parameters gets no signature', () => {
  for (const line of [
    ...['', 'k', '[]', 'null', '{"key":"k"}', '{"key":"","params":{}}', '{"key":1,"params":{}}'],
    ...['{"params":{}}', '{"key":"k","params":"{}"}', '{"key":"k","params":[]}', '{"key":"k","params":null}'],
    ...['{"key":"k","params":{"a":1,"a":2}}', '{"key":"k","key":"l","params":{}}'],
  ]) {
    assert.equal(signatureOf(line, rules), null, line)
  }
})

test('a wrong line ends the command with its number, and the error repeats nothing of the line', async () => {
  const good = JSON.stringify({ key: 'k', params: { a: '1' } })
  const lines = [good, '{"key":"hush-hush"}', good]
  const { code, stdout, stderr } = await payoutdAlone(['gateway', 'sign'], {}, lines.join('\n'))
  assert.deepEqual([code, stdout], [1, `${md5('a=1&key=k')}\n`])
  assert.match(stderr, /^line 2: .*with a key that is not empty/)
  assert.ok(!stderr.includes('hush'))
})

test('the error about an unknown dialect is one line', async () => {
  const { code, stderr } = await payoutd(['gateway', 'sign', '--dialect', 'none.json'], {})
  assert.equal(code, 1)
  assert.match(stderr, /^[^\n]*none\.json[^\n]*\n$/)
})

test('a reader who stops after the first signature causes no error output', async () => {
  const lines = Array.from({ length: 200 }, () => '{"key":"k","params":{"a":"1"}}').join('\n')
  const { code, stderr } = await payoutdAlone(['gateway', 'sign'], {}, lines, ({ stdout }) =>
    stdout?.destroy(),
  )
  assert.deepEqual([code, stderr], [0, ''])
})
