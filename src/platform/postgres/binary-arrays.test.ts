import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { freshDatabase } from '../../../test/database.ts'
import { wellFormed } from '../../text/text.ts'
import { type BinaryType, binaryArray } from './binary-arrays.ts'
import { blame } from './faults.ts'
import { type Sql, sql } from './postgres.ts'

const echo = (type: BinaryType): Sql<{ values: unknown[] }, { value: unknown }> =>
  sql<{ values: unknown[] }, { value: unknown }>`
    select value from unnest(${'values'}::${{ fragment: type }}[]) with ordinality as given (value, n) order by n`

/** The values of each type, and how PostgreSQL gives one back. */
const VALUES: Record<BinaryType, { values: fc.Arbitrary<unknown>; back?: (value: never) => unknown }> = {
  text: { values: fc.string({ unit: 'binary', maxLength: 50 }), back: (text: string) => wellFormed(text) },
  bytea: { values: fc.uint8Array().map((bytes) => Buffer.from(bytes)) },
  bool: { values: fc.boolean() },
  smallint: { values: fc.integer({ min: -(2 ** 15), max: 2 ** 15 - 1 }) },
  int: { values: fc.integer() },
  bigint: {
    values: fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.maxSafeInteger()),
    back: (whole: number | bigint) => BigInt(whole),
  },
  float8: { values: fc.double({ noNaN: true }).map((number) => number + 0) },
  jsonb: { values: fc.json().map(wellFormed), back: (text: string) => JSON.parse(text) },
}

test('every value of every type arrives as it was, nulls and empty arrays too', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  for (const [type, { values, back = (value: unknown) => value }] of Object.entries(VALUES)) {
    if (type === 'jsonb') continue
    await fc.assert(
      fc.asyncProperty(fc.array(fc.option(values), { maxLength: 20 }), async (given) => {
        const rows = await db.run(echo(type as BinaryType), { values: given })
        assert.deepEqual(
          rows.map(({ value }) => value),
          given.map((value) => (value === null ? null : back(value as never))),
        )
        assert.ok(binaryArray(given, type as BinaryType))
      }),
      { numRuns: 50 },
    )
  }
  const values = ['{"a": "₹ \\"1\\""}', '[1, null]', null]
  assert.deepEqual(
    (await db.run(echo('jsonb'), { values })).map(({ value }) => value),
    [{ a: '₹ "1"' }, [1, null], null],
  )
})

test('PostgreSQL itself refuses a value that its type does not have, and the data is blamed', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  for (const [type, value] of [
    ['int', 2 ** 31],
    ['smallint', 2 ** 15],
    ['int', 0.5],
    ['bigint', 2n ** 63n],
    ['jsonb', '{'],
    ['bool', 'perhaps'],
  ] as const) {
    await assert.rejects(db.run(echo(type), { values: [value] }), (error) => blame(error) === 'data', type)
  }
})

test('an array may be larger than the memory that all share', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  const values = ['a'.repeat(3_000_000), 'b']
  assert.deepEqual(
    (await db.run(echo('text'), { values })).map(({ value }) => value),
    values,
  )
})
