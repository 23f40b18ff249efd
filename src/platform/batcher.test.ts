import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Batcher } from './batcher.ts'

const OPTIONS = { size: 3, waitMs: 1, lanes: 1 }

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

test('while all lanes are taken the next batch grows, up to its size', async () => {
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

test('a batch that fails rejects its own items only', async () => {
  const batcher = new Batcher<number, number>({ ...OPTIONS, size: 2 }, async (items) => {
    if (items.includes(2)) throw new Error('store is down')
    return items
  })
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map((item) => batcher.add(item)))
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected', 'fulfilled', 'fulfilled'],
  )
})

test('draining waits for what was added and what is under way', async () => {
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
