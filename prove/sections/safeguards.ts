import { type Bench, type Row, rowOf } from '../matrix.ts'
import { accountChanged, promiseTakenBack } from '../scenes/accounts.ts'
import { halfOpenConnections, otherIsolation, tamperedAmounts } from '../scenes/database.ts'
import { cancelFirst, refusedMessages, topicMadeAgain } from '../scenes/kafka-edges.ts'
import {
  calledFailedSince,
  endedTwice,
  failedInFence,
  loweredMaximum,
  payinPaidLate,
  setBackUnderWay,
} from '../scenes/restored.ts'
import { cancelledInDoubt, lateFailure, otherOrderAlive, shownOnce } from '../scenes/two-orders.ts'
import type { Scene } from '../scenes.ts'
import * as scenes from '../scenes.ts'
import { WITHOUT } from '../without/safeguards.ts'

/** The story that shows the lack of each safeguard. */
const TOLD_BY: Readonly<Record<keyof typeof WITHOUT, Scene>> = {
  'intent before send': scenes.crashUnderWay,
  'lease check before sending': scenes.frozenPastItsLease,
  'balance gate': scenes.shortBalance,
  'offsets with the batch': scenes.crashBetweenOffsetsAndCommands,
  'messages with the state': scenes.crashBetweenStateAndMessages,
  'delete after publish': scenes.crashAfterForgetting,
  'refused messages set aside': refusedMessages,
  'topic id': topicMadeAgain,
  'early cancellations': cancelFirst,
  'request to cancel': cancelledInDoubt,
  'fence when the ledger lost commands': setBackUnderWay,
  'no failure while fenced': failedInFence,
  'own history compared': endedTwice,
  'ends of payins read back': payinPaidLate,
  'faulty commands held while fenced': loweredMaximum,
  'stored fingerprint checked': tamperedAmounts,
  'time limits of statements': halfOpenConnections,
  'isolation set per connection': otherIsolation,
  'account of an attempt': accountChanged,
  'promises at the claim': promiseTakenBack,
  'amount match': scenes.falseCallbacks,
  'first report counts': scenes.falseCallbacks,
  'failure in doubt': lateFailure,
  'signs of life': shownOnce,
  'orders besides': otherOrderAlive,
  'signature check': scenes.falseCallbacks,
  grace: scenes.notFoundForAWhile,
  'presence check': scenes.neverFound,
  'recent presence check': scenes.foundNoLonger,
  'unknown is unknown': scenes.crashUnderWay,
  'unknown is not sent again': scenes.crashUnderWay,
  'a duplicate is no refusal': scenes.notFoundForTooLong,
  'a refusal is confirmed': scenes.deniedApplies,
  '"later" is confirmed': scenes.deniedApplies,
  'an ended lease is unknown': scenes.crashBeforeAnswers,
}

/** Stories about the same safeguards in another way. */
const BESIDES: readonly Scene[] = [calledFailedSince]

/** Those that show within seconds. */
const QUICK = new Set(['signature check', 'first report counts'])

/**
 * Plays each story with the whole payoutd, which must come out right, and then without each of its safeguards,
 * which must not: a matrix that does not notice would prove nothing.
 */
export async function* safeguards(bench: Bench): AsyncGenerator<Row> {
  const missing = Object.entries(TOLD_BY).filter(([name]) => !bench.quick || QUICK.has(name))
  const whole = new Set([...missing.map(([, scene]) => scene), ...(bench.quick ? [] : BESIDES)])
  for (const scene of whole) {
    bench.tell(scene.name)
    const { faults, ...verdict } = await scene.play(bench)
    yield rowOf({ section: 'stories', name: scene.name, runs: 1, faults }, verdict)
  }
  for (const [name, scene] of missing) {
    bench.signal.throwIfAborted()
    bench.tell(`without: ${name}`)
    const { faults, ...verdict } = await scene.play(bench, name)
    const row = rowOf(
      { section: 'safeguards', name, runs: 1, faults, note: WITHOUT[name]?.about ?? '' },
      verdict,
    )
    yield { ...row, caughtBy: [...new Set(verdict.discrepancies.map(({ kind }) => kind))] }
  }
}
