import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withSession } from '../src/platform/postgres/postgres.ts'
import { freshDatabase, type Owner } from './database.ts'

test('what a test leaves running does not reach the database of the next one', async (t) => {
  const hooks: (() => Promise<void>)[] = []
  const former: Owner = { after: (hook) => hooks.push(hook) }
  const { url } = await freshDatabase(former)
  await withSession(url, (session) =>
    session.query(`insert into merchants (merchant_id, settings_hash) values ('acme', 'h')`),
  )
  for (const hook of hooks) await hook()

  const { url: next } = await freshDatabase(t)
  assert.notEqual(next, url)
  await withSession(next, async (session) => {
    assert.deepEqual((await session.query('select * from merchants')).rows, [])
  })
  await assert.rejects(
    withSession(url, (session) => session.query('select')),
    /does not exist/,
  )
})
