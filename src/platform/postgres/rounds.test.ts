import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { Rounds } from './rounds.ts'

const failure = (code: string) => Object.assign(new pg.DatabaseError('failed', 0, 'error'), { code })

test('a round goes on past a merchant that is refused or locked, and ends where the database fails; the next begins after it', async () => {
  const rounds = new Rounds<{ merchantId: string }>()
  const all = ['acme', 'bolt', 'coil', 'dune'].map((merchantId) => ({ merchantId }))
  const errors = new Map([
    ['acme', failure('23514')],
    ['bolt', failure('55P03')],
    ['coil', failure('57P01')],
  ])
  const went: string[] = []
  const refused: string[] = []
  const go = () =>
    rounds.go(
      all,
      async ({ merchantId }) => {
        went.push(merchantId)
        const error = errors.get(merchantId)
        if (error) throw error
      },
      ({ merchantId }) => refused.push(merchantId),
    )
  await assert.rejects(go(), { code: '57P01' })
  assert.deepEqual(
    [went.splice(0), refused.splice(0)],
    [
      ['acme', 'bolt', 'coil'],
      ['acme', 'bolt'],
    ],
  )
  errors.delete('coil')
  await go()
  assert.deepEqual(
    [went, refused],
    [
      ['dune', 'acme', 'bolt', 'coil'],
      ['acme', 'bolt'],
    ],
  )
})
