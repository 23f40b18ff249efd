import { test } from 'node:test'
import { silentLogger } from '../log.ts'
import { Slots } from './slots.ts'

test('a task that rejects gives its slot back and ends nothing else', async () => {
  const slots = new Slots(1, silentLogger)
  slots.run(async () => {
    throw new Error('a bug')
  })
  const ran = Promise.withResolvers<void>()
  slots.run(async () => ran.resolve())
  await ran.promise
  await slots.drain()
})
