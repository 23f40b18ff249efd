import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DatabaseError } from 'pg'
import { Batcher } from './batcher.ts'

const bare = <Item>(item: Item) => item
const OPTIONS = { size: 3, waitMs: 1, bare }

const refusal = (sqlState: string): DatabaseError =>
  Object.assign(new DatabaseError('refused', 0, 'error'), { code: sqlState })

test('items go together, and each gets its own result', async () => {
  const batches: number[][] = []
  const batcher = new Batcher<number, number>(OPTIONS, async (items) => {
    batches.push(items)
    return items.map((item) => item * 10)
  })
  const results = await Promise.all([1, 2, 3, 4].map((item) => batcher.add(item)))
  assert.deepEqual(results, [10, 20, 30, 40])
  assert.deepEqual(batches, [[1, 2, 3], [4]])
})

test('while a batch runs the next one grows, up to its size', async () => {
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const sizes: number[] = []
  const batcher = new Batcher<number, undefined>({ ...OPTIONS, size: 5 }, async (items) => {
    sizes.push(items.length)
    begun.resolve()
    if (sizes.length === 1) await gate.promise
    return items.map(() => undefined)
  })
  const first = batcher.add(0)
  await begun.promise
  const others = [1, 2, 3, 4, 5, 6].map((item) => batcher.add(item))
  gate.resolve()
  await Promise.all([first, ...others])
  assert.deepEqual(sizes, [1, 5, 1])
})

test('after a large batch the next one waits three times as long', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const sizes: number[] = []
  const batcher = new Batcher<number, undefined>({ size: 100, waitMs: 10, bare }, async (items) => {
    sizes.push(items.length)
    return items.map(() => undefined)
  })
  const add = (count: number) => Promise.all(Array.from({ length: count }, (_, i) => batcher.add(i)))
  for (const [count, early, ms] of [
    [7, 9, 1],
    [8, 9, 1],
    [1, 29, 1],
    [1, 9, 1],
  ] as const) {
    const before = sizes.length
    const added = add(count)
    t.mock.timers.tick(early)
    assert.equal(sizes.length, before)
    t.mock.timers.tick(ms)
    await added
  }
  assert.deepEqual(sizes, [7, 8, 1, 1])
})

for (const sqlState of ['22P05', '23505', '54000', '08P01', 'XX000']) {
  test(`the one item that the database refuses (${sqlState}) rejects alone, and its neighbours are stored in order`, async () => {
    const stored: number[] = []
    const batcher = new Batcher<number, number>({ ...OPTIONS, size: 8 }, async (items) => {
      if (items.includes(5)) throw refusal(sqlState)
      stored.push(...items)
      return items
    })
    const outcomes = await Promise.allSettled([1, 2, 3, 4, 5, 6, 7, 8].map((item) => batcher.add(item)))
    assert.deepEqual(
      outcomes.flatMap(({ status }, i) => (status === 'rejected' ? [i + 1] : [])),
      [5],
    )
    assert.deepEqual(stored, [1, 2, 3, 4, 6, 7, 8])
    await batcher.drain()
  })
}

for (const sqlState of ['08006', '40001', '53100', '57P01', '58030', '25006', '42P01', '55P03']) {
  test(`a batch that fails because the database is at fault (${sqlState}) rejects whole, after one try`, async () => {
    let tries = 0
    const batcher = new Batcher<number, number>(OPTIONS, async () => {
      tries++
      throw refusal(sqlState)
    })
    const outcomes = await Promise.allSettled([1, 2, 3].map((item) => batcher.add(item)))
    assert.deepEqual(new Set(outcomes.map(({ status }) => status)), new Set(['rejected']))
    assert.equal(tries, 1)
  })
}

test('the locks of one row of 500 keep no other from being stored, and those of all are not waited for one by one', async () => {
  for (const locked of [[317], Array.from({ length: 500 }, (_, i) => i)]) {
    let tries = 0
    const batcher = new Batcher<number, number>({ ...OPTIONS, size: 500, about: String }, async (items) => {
      tries++
      if (items.some((item) => locked.includes(item))) throw refusal('55P03')
      return items
    })
    const outcomes = await Promise.allSettled(Array.from({ length: 500 }, (_, i) => batcher.add(i)))
    assert.deepEqual(
      outcomes.flatMap(({ status }, i) => (status === 'rejected' ? [i] : [])),
      locked,
    )
    assert.ok(tries < 25, `${tries}`)
  }
})

test('after an item that must wait, none of the same thing is stored before it', async () => {
  let isLocked = true
  const stored: string[] = []
  const about = (item: string) => item.slice(0, 1)
  const batcher = new Batcher<string, string>(
    { ...OPTIONS, size: 4, bare: (item) => item, about },
    async (items) => {
      if (items.includes('a1') && isLocked) throw refusal('55P03')
      stored.push(...items)
      return items
    },
  )
  const adding = Promise.allSettled(['a1', 'b1', 'a2', 'b2'].map((item) => batcher.add(item)))
  const outcomes = await adding
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'fulfilled', 'rejected', 'fulfilled'],
  )
  isLocked = false
  await Promise.all(['a1', 'a2'].map((item) => batcher.add(item)))
  assert.deepEqual(stored, ['b1', 'b2', 'a1', 'a2'])
})

test('a refused item is stored bare', async () => {
  const stored: string[] = []
  const options = { ...OPTIONS, bare: () => 'bare' }
  const batcher = new Batcher<string, undefined>(options, async (items) => {
    if (items.includes('poison')) throw refusal('22P02')
    stored.push(...items)
    return items.map(() => undefined)
  })
  await Promise.all(['a', 'poison', 'b'].map((item) => batcher.add(item)))
  assert.deepEqual(stored, ['a', 'bare', 'b'])
})

test('an item that fails for an unclear reason is tried again on its own, and only then refused', async () => {
  let tries = 0
  const batcher = new Batcher<number, number>(OPTIONS, async (items) => {
    if (items.includes(1) && ++tries < 3) throw new Error('a passing bug')
    return items
  })
  assert.deepEqual(await Promise.all([1, 2].map((item) => batcher.add(item))), [1, 2])
})

test('draining waits for queued items and running batches', async () => {
  const done: number[] = []
  const batcher = new Batcher<number, undefined>({ ...OPTIONS, waitMs: 60_000 }, async (items) => {
    await new Promise((resolve) => setImmediate(resolve))
    done.push(...items)
    return items.map(() => undefined)
  })
  void batcher.add(1)
  void batcher.add(2)
  await batcher.drain()
  assert.deepEqual(done, [1, 2])
})
