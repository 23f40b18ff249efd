import assert from 'node:assert/strict'
import { anomaliesOf, upsertMerchant } from '../../../../test/ledger.ts'
import { WHO } from '../../../../test/lost-ledger.ts'
import { recoveryDeps } from '../../../../test/recovery-deps.ts'
import { CURRENT, POLICY, PROMISING } from '../../../../test/two-accounts.ts'
import { serverClock } from '../../../doctor/sql/server.ts'
import type { Instant } from '../../../domain/instant.ts'
import type { QueryPolicy } from '../../../domain/payout/next-query.ts'
import type { Payout } from '../../../domain/payout/payout.ts'
import type { State } from '../../../domain/payout/states.ts'
import { lockPayouts } from '../../../ledger/ledger.ts'
import { sql } from '../../../platform/postgres/postgres.ts'
import { demandReadable } from '../../../platform/registry/codec.ts'
import type { AskedAccount } from '../accounts.ts'
import { recallAnomalies } from '../anomalies.ts'
import { messageIn, readBackPublished } from '../read-back-published.ts'
import { fence, listOpen, lowerAfterRecovery, queryOpen } from '../recovery.ts'
import { makeReady, monthsPass, type SetBack } from '../set-back.fixture.ts'
import { orderInWords, otherThan, type StoryAccount, StoryGateway } from './gateway.fixture.ts'

type ResultRead = { status: State; version: number; utr: string | null; at: Instant }

export const KEY = { merchantId: 'acme', payoutId: 'p' }

const inForce = sql<{ settingsHash: string }>`update merchants set settings_hash = ${'settingsHash'}`
const forgetPublished = sql<object>`truncate published_messages`

/** The story of `p`, of the ledgers that had it one after another, and of its gateway, with a log in words. */
export class SetBackStory {
  readonly lost: SetBack
  readonly gateway: StoryGateway
  readonly queryPolicy: QueryPolicy
  readonly log: string[] = []
  /** The times of the attempts that the gateway has answered: an answer that was lost with a ledger does not come again. */
  readonly answered = new Set<string>()
  /** Whose settings are in force. */
  account: StoryAccount = CURRENT
  /** The ledger is lost before it stores anything more. */
  isSilent = false
  historySince: Instant = 0
  /** How many messages this ledger had when its backup was made. */
  backedUpAt = 0
  /** This ledger has been recovered, so it knows of what the ledgers before it did. */
  isRecovered = false

  constructor(lost: SetBack, refusesDuplicates: boolean) {
    this.lost = lost
    this.gateway = new StoryGateway(refusesDuplicates)
    this.queryPolicy = refusesDuplicates ? PROMISING : POLICY
  }

  async begin(isOwnFirst: boolean): Promise<void> {
    await this.lost.startAnew(isOwnFirst)
    await this.lost.db.run(forgetPublished, {})
  }

  /** Null: this ledger has not read its command. */
  async payout(): Promise<Payout | null> {
    const [payout] = await this.lost.db.transaction('test', (tx) => lockPayouts(tx, [KEY]))
    return payout ?? null
  }

  /** The ends in payout.results, whichever ledger published them. */
  async publishedEnds(): Promise<ResultRead[]> {
    const { codec, readTopic, ledger } = await this.lost.kept()
    const ends: ResultRead[] = []
    await readTopic(ledger.topics.results, async (record) => {
      const { state, ...end } = messageIn(
        demandReadable(await codec.decode(record.value), 'the results', record),
      )
      ends.push({ status: state, ...end })
    })
    return ends
  }

  anomalies = (): Promise<string[]> => anomaliesOf(this.lost.ledger)

  /** Adds what happened to the log, and what is known then. */
  async note(what: string): Promise<void> {
    const payout = await this.payout()
    const known = payout ? payoutInWords(payout) : 'not in the ledger'
    const anomalies = (await this.anomalies()).join(', ') || 'none'
    this.log.push(`${what} → ${known}; gateway: ${this.gateway.inWords()}; anomalies: ${anomalies}`)
  }

  async dropHistory(): Promise<void> {
    await this.lost.db.run(monthsPass, {})
    this.historySince = (await this.lost.db.run(serverClock, {}))[0]?.shown ?? assert.fail('no clock')
  }

  async backUp(): Promise<void> {
    await this.lost.backUp()
    this.backedUpAt = (await this.lost.published()).length
  }

  /** `breaksRules`: the command does, by the settings of the day, so it is rejected. */
  async read(breaksRules = false): Promise<void> {
    await (breaksRules ? this.lost.readAgain() : this.lost.read())
    await this.adopt(this.account)
  }

  async adopt(account: StoryAccount): Promise<void> {
    this.account = account
    await this.lost.db.run(inForce, account)
  }

  /** What dispatch does now, if anything. A recovered ledger pays nothing twice. */
  async send(): Promise<string> {
    const { lost, account, gateway } = this
    await lost.db.run(makeReady, {})
    if ((await lost.wave(account)).length === 0) return 'dispatch sends nothing'
    const [besides] = this.isRecovered ? gateway.paidBesides(account) : []
    if (besides) assert.fail(`sent at ${account.accountId} while order ${orderInWords(besides)}`)
    return `dispatch sends it at ${account.accountId}`
  }

  /** As `payoutd recover` does by settings that have both accounts. `between`: what happens after the list is made. */
  async recover(between: () => Promise<void> = async () => undefined): Promise<void> {
    const { lost, account } = this
    const { settingsHash } = account
    const accounts = [this.#asked(account), this.#asked(otherThan(account))] as const
    await lost.db.run(upsertMerchant, { merchantId: 'acme', settingsHash, feeEstimate: 0n })
    const settings = accounts.map((each) => each.settingsHash)
    const [raised] = await fence(lost.db, [{ merchantId: 'acme', feeEstimate: 0n, settings }], WHO)
    assert.ok(raised)
    const topics = await lost.kept()
    await listOpen(lost.db, raised)
    await between()
    await readBackPublished(['acme'], topics)
    await recallAnomalies(['acme'], topics)
    await listOpen(lost.db, raised)
    await this.note('a recovery has read what was published')
    await queryOpen(raised, { ...recoveryDeps(), ledger: lost.ledger, who: WHO, accounts })
    const { kind } = await lowerAfterRecovery(raised, WHO, lost.ledger)
    assert.equal(kind, 'recovered', 'the recovery does not end, although every account has answered')
    this.isSilent = false
    this.isRecovered = true
    await this.note('it has asked both accounts, and has ended')
  }

  #asked(account: StoryAccount): AskedAccount {
    const presenceCheck = { found: () => undefined, holds: async () => true }
    const query = async () => this.gateway.answer(account)
    return { ...account, queryPolicy: this.queryPolicy, query, presenceCheck }
  }
}

function payoutInWords(payout: Payout): string {
  const { state, reason, version, attempt, accountId, doubted, orderBesides } = payout
  const at = accountId === null ? 'no known account' : accountId
  const doubts = [doubted && 'doubted', orderBesides && 'another order was shown'].filter(Boolean)
  return [`${state} (${reason}) v${version}`, `attempt ${attempt} at ${at}`, ...doubts].join(', ')
}
