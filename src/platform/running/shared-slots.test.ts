import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { silentLogger } from '../log.ts'
import { SharedSlots } from './shared-slots.ts'

test('one of two owners may hold seven of eight slots, and the other always finds the eighth free', () => {
  const slots = new SharedSlots(256, ['a', 'b'], silentLogger)
  assert.equal(slots.room('a'), 224)
  slots.take('a', 224)
  assert.deepEqual([slots.room('a'), slots.room('b')], [0, 32])
  slots.take('b', 32)
  assert.equal(slots.room('b'), 0)
  slots.giveBack('a', 100)
  assert.deepEqual([slots.room('a'), slots.room('b')], [100, 100])
})

test('a single owner may hold every slot', () => {
  assert.equal(new SharedSlots(256, ['a'], silentLogger).room('a'), 256)
})

test('however much the owners take, one that holds nothing always finds room, and they never hold more than there is', () => {
  const moves = fc.array(fc.tuple(fc.nat(99), fc.nat(300), fc.boolean()), { maxLength: 60 })
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 300 }),
      fc.integer({ min: 1, max: 100 }),
      moves,
      (size, count, all) => {
        const owners = Array.from({ length: count }, (_, i) => `m${i}`)
        const slots = new SharedSlots(size, owners, silentLogger)
        for (const [who, many, back] of all) {
          const owner = owners[who % count] as string
          if (back) slots.giveBack(owner, Math.min(many, slots.held(owner)))
          else slots.take(owner, Math.min(many, slots.room(owner)))
          const held = owners.reduce((sum, each) => sum + slots.held(each), 0)
          assert.ok(held <= (count > size / 4 ? size + count : size))
          for (const each of owners) if (slots.held(each) === 0) assert.ok(slots.room(each) >= 1)
        }
      },
    ),
  )
})

test('however many others there are that hold nothing, one may hold three quarters of the slots', () => {
  for (const count of [1, 16, 64, 256, 1_000]) {
    const owners = Array.from({ length: count }, (_, i) => `m${i}`)
    assert.ok(new SharedSlots(256, owners, silentLogger).room('m0') >= 192, `of ${count}`)
  }
})

test('a slot is free again once its task has ended', async () => {
  const slots = new SharedSlots(4, ['a', 'b'], silentLogger)
  const task = Promise.withResolvers<void>()
  slots.run('a', () => task.promise)
  assert.deepEqual([slots.held('a'), slots.room('a')], [1, 3])
  task.resolve()
  await slots.drain()
  assert.deepEqual([slots.held('a'), slots.room('a')], [0, 4])
})
