import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeStandings } from './commands.ts'

const log = { id: 'log', partition: 0, low: 5n, high: 9n }
const judge = (offset: bigint, logId = 'log') =>
  judgeStandings('payout.commands', [log], [{ partition: 0, offset, logId }])

test('commands that are gone are told of before intake has noticed', () => {
  assert.match(judge(3n).what, /partition 0 has dropped commands that payoutd had not read \(.* at 3\)/)
  assert.match(judge(12n).what, /partition 0 holds less/)
  assert.match(judge(7n, 'old').what, /partition 0 was deleted and made again/)
  for (const finding of [judge(3n), judge(12n), judge(7n, 'old')]) assert.equal(finding.state, 'wrong')
  assert.equal(judge(7n).state, 'good')
  assert.equal(judgeStandings('payout.commands', [log], []).state, 'good')
})
