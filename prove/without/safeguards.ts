import { SAFEGUARDS, type Safeguards } from '../../src/app/safeguards.ts'
import type { PayoutCommand } from '../../src/domain/commands/command.ts'
import type { OrderReport } from '../../src/domain/evidence.ts'
import type { ApplyAnswer } from '../../src/domain/gateway-answers.ts'
import { fingerprint } from '../../src/domain/identifiers.ts'
import type { Payout } from '../../src/domain/payout/payout.ts'
import { become, change } from '../../src/domain/payout/transition.ts'
import { type SignRules, signature } from '../../src/gateway/wire/sign.ts'
import { openDetails, sealDetails } from '../../src/ledger/encrypted-details.ts'
import { lockFences } from '../../src/ledger/sql/fenced-merchants.ts'
import { fenceEvery } from '../../src/ledger/sql/server-identity.ts'
import { appendOutbox, storeTransitions } from '../../src/ledger/sql/store.ts'
import { notOwn } from '../../src/operators/recovery/sql/read-back-published.ts'
import { behindPublished } from '../../src/payins/sql/published.ts'
import type { Standing } from '../../src/platform/kafka/offsets.ts'
import { type Publisher, RefusedByKafka } from '../../src/platform/kafka/producer.ts'
import {
  type Connection,
  type Database,
  type Sql,
  sql,
  type Transaction,
} from '../../src/platform/postgres/postgres.ts'
import { claim as committedClaim } from '../../src/stages/dispatch/claim.ts'
import { type Candidate, lockCandidates } from '../../src/stages/dispatch/sql/claim.ts'
import { lockFundsIfFree } from '../../src/stages/dispatch/sql/funds.ts'
import { takeEarlyCancels } from '../../src/stages/intake/sql/early-cancels.ts'
import { beginAt, lockStanding, moveOffset, standing } from '../../src/stages/intake/sql/offsets.ts'

const { decisions, readCallback } = SAFEGUARDS

/** A missing part of payoutd: its replacement, in a payoutd with all other parts, and its description for a reader. */
export type Missing = { about: string; put: (whole: Safeguards) => Partial<Safeguards> }

/** Decides one question differently. */
const judging = (other: Partial<Safeguards['decisions']>) => (): Partial<Safeguards> => ({
  decisions: { ...decisions, ...other },
})

/** An answer of this kind ends its attempt without a query. */
const ending = (kind: ApplyAnswer['kind'], to: 'failed' | 'queued') =>
  judging({
    recordApply(payout, attempt, answer, ...rest) {
      if (answer.kind !== kind || payout.state !== 'submitting' || payout.attempt !== attempt)
        return decisions.recordApply(payout, attempt, answer, ...rest)
      const fields =
        to === 'failed' ? { reason: kind, unreported: true } : { reason: kind, ready: true, accountId: null }
      return change(payout, become(payout, to, fields), 'APPLY', answer.exchange)
    },
  })

/** The same database, except for what `other` replaces. */
const withDatabase =
  (other: (db: Database) => Partial<Database>): Missing['put'] =>
  ({ connectDatabase }) => ({
    connectDatabase: (options) => {
      const db = connectDatabase(options)
      return { ...db, ...other(db) }
    },
  })

/** A transaction in which `instead` may answer for a statement; undefined: the statement runs as usual. */
const intercepted = (
  tx: Transaction,
  instead: (statement: unknown, params: unknown) => unknown[] | undefined,
): Transaction => ({
  now: tx.now,
  run: async <P, R>(statement: Sql<P, R>, params: P) =>
    (instead(statement, params) as R[] | undefined) ?? tx.run(statement, params),
})

/** A statement that finds nothing in any transaction. */
const findingInTransactions = (missed: unknown): Missing['put'] =>
  withDatabase((db) => ({
    transaction: (name, work) =>
      db.transaction(name, (tx) =>
        work(intercepted(tx, (statement) => (statement === missed ? [] : undefined))),
      ),
  }))

/** Rows of payouts without the account that each was sent to. */
const sentNowhere = <Row>(rows: Row[]): Row[] =>
  rows.map((row) => (row instanceof Object && 'orderNo' in row ? { ...row, accountId: null } : row))

/** Statements outside of any transaction that find nothing. */
const finding = (...missed: readonly unknown[]): Missing['put'] =>
  withDatabase((db) => ({
    run: async (statement, params) => (missed.includes(statement) ? [] : db.run(statement, params)),
  }))

class RolledBack extends Error {
  readonly result: unknown

  constructor(result: unknown) {
    super('rolled back')
    this.result = result
  }
}

/** Returns what `work` returns, but commits nothing. */
const uncommitted = (db: Database): Database => ({
  ...db,
  transaction: (name, work) =>
    db
      .transaction<never>(name, async (tx) => {
        throw new RolledBack(await work(tx))
      })
      .catch((error: unknown) => {
        if (error instanceof RolledBack) return error.result as never
        throw error
      }),
})

/** The same report with our amount in place of its own. */
const ofOurAmount = (payout: Payout, report: OrderReport): OrderReport => ({
  ...report,
  amount: payout.amount,
})

/** Takes the fields as received, and signs them itself. */
function resigned(rawQuery: string, rules: SignRules, key: string): string {
  const fields = new URLSearchParams(rawQuery)
  fields.delete('sign')
  fields.set('sign', signature(new Map(fields), key, rules, 'callbacks'))
  return fields.toString()
}

const SLOW_PUBLISH_MS = 1_000

const asTheDatabaseHasIt = sql<object>`reset default_transaction_isolation`

const WITH_MESSAGES = new Set<unknown>([appendOutbox, storeTransitions])

export const WITHOUT: Readonly<Record<string, Missing>> = {
  'intent before send': {
    about: 'the intent to send is not committed',
    put: () => ({
      claim: (ledger, options) => committedClaim({ ...ledger, db: uncommitted(ledger.db) }, options),
    }),
  },
  'lease check before sending': {
    about: 'a process sends although its lease is over',
    put: () => ({ maySend: () => true }),
  },
  'balance gate': {
    about: 'more is sent than the balance covers',
    put: () => ({
      claim: (ledger, options) => {
        const db: Database = {
          ...ledger.db,
          transaction: (name, work) =>
            ledger.db.transaction(name, async (tx) => {
              const rich: Transaction = {
                now: tx.now,
                run: async (statement, params) => {
                  const rows = await tx.run(statement, params)
                  if ((statement as unknown) !== lockFundsIfFree) return rows
                  return rows.map((row) => ({ ...row, available: 10n ** 15n, snapshotAt: tx.now }))
                },
              }
              return work(rich)
            }),
        }
        return committedClaim({ ...ledger, db }, options)
      },
    }),
  },
  'offsets with the batch': {
    about: 'offsets are committed before their commands',
    put: withDatabase((db) => ({
      async transaction(name, work) {
        if (name !== 'take in commands') return db.transaction(name, work)
        const moves: object[] = []
        let stands: unknown[] = []
        await uncommitted(db).transaction('test', async (tx) =>
          work({
            now: tx.now,
            run: async (statement, params) => {
              const rows = await tx.run(statement, params)
              if ((statement as unknown) === lockStanding) stands = rows
              if ((statement as unknown) === moveOffset) moves.push(params as object)
              return rows
            },
          }),
        )
        await db.transaction('test: offsets alone', async (tx) => {
          for (const params of moves) await tx.run(moveOffset, params as never)
        })
        return db.transaction(name, (tx) =>
          work(
            intercepted(tx, (statement) => {
              if (statement === lockStanding) return stands
              return statement === moveOffset ? [] : undefined
            }),
          ),
        )
      },
    })),
  },
  'messages with the state': {
    about: 'messages are written after the transaction that they report',
    put: withDatabase((db) => ({
      async transaction(name, work) {
        const later: unknown[] = []
        const result = await db.transaction(name, async (tx) => {
          later.length = 0
          return work({
            now: tx.now,
            run: async (statement, params) => {
              if (!WITH_MESSAGES.has(statement)) return tx.run(statement, params)
              later.push(params)
              return (statement as unknown) === appendOutbox
                ? []
                : tx.run(statement, { ...params, messages: [] })
            },
          })
        })
        for (const params of later) await db.write('test: messages alone', appendOutbox, params as never)
        return result
      },
    })),
  },
  'delete after publish': {
    about: 'a message is deleted before Kafka has it',
    put: ({ createPublisher }) => ({
      createPublisher: (name, connection, log): Publisher => {
        const publisher = createPublisher(name, connection, log)
        return {
          ...publisher,
          publish: async (records) => {
            setTimeout(() => void publisher.publish(records).catch(() => undefined), SLOW_PUBLISH_MS)
          },
        }
      },
    }),
  },
  'refused messages set aside': {
    about: 'a message that Kafka refuses is retried like any other, and later messages wait behind it',
    put: ({ createPublisher }) => ({
      createPublisher: (name, connection, log): Publisher => {
        const publisher = createPublisher(name, connection, log)
        return {
          ...publisher,
          publish: async (records) => {
            for (const record of records) {
              await publisher.publish([record]).catch((error: unknown) => {
                throw error instanceof RefusedByKafka ? new Error(error.message) : error
              })
            }
          },
        }
      },
    }),
  },
  'topic id': {
    about: 'offsets of a deleted topic are used for the topic that was made again',
    put: withDatabase((db) => {
      let logId: string | null = null
      const forgetful = (on: Connection): Connection['run'] =>
        async function run<P, R>(statement: Sql<P, R>, params: P): Promise<R[]> {
          if ((statement as unknown) === beginAt) return on.run(statement, { ...params, beforeLogId: logId })
          const rows = await on.run(statement, params)
          if ((statement as unknown) !== standing) return rows
          logId = (rows[0] as Standing | undefined)?.logId ?? null
          return rows.map((row) => ({ ...row, logId: null }))
        }
      return {
        run: forgetful(db),
        transaction: (name, work) => db.transaction(name, (tx) => work({ now: tx.now, run: forgetful(tx) })),
      }
    }),
  },
  'fence when the ledger lost commands': {
    about: 'intake goes on after the ledger was set back under a running payoutd, and no merchant is fenced',
    put: findingInTransactions(fenceEvery),
  },
  'isolation set per connection': {
    about: 'transactions use the default isolation of the database',
    put: ({ connectDatabase }) => ({
      connectDatabase: (options) =>
        connectDatabase({
          ...options,
          onConnect: async (connection) => {
            await connection.run(asTheDatabaseHasIt, {})
            await options.onConnect?.(connection)
          },
        }),
    }),
  },
  'early cancellations': {
    about: 'a cancellation that arrives before its command is forgotten',
    put: findingInTransactions(takeEarlyCancels),
  },
  'request to cancel': {
    about: 'a cancellation that arrives during an attempt is forgotten when the payout may be sent again',
    put: judging({
      recordApply: (payout, ...rest) => decisions.recordApply({ ...payout, cancelRequest: null }, ...rest),
      recordAbsence: (payout, ...rest) =>
        decisions.recordAbsence({ ...payout, cancelRequest: null }, ...rest),
    }),
  },
  'no failure while fenced': {
    about: 'the gateway’s report ends a payout as failed while nobody knows what the ledger lacks',
    put: judging({ whileFenced: (decision) => decision }),
  },
  'own history compared': {
    about: 'a recovery goes by versions to tell what was published from what the ledger did itself',
    put: finding(notOwn),
  },
  'ends of payins read back': {
    about: 'a recovery ignores the published ends of payins',
    put: finding(behindPublished),
  },
  'faulty commands held while fenced': {
    about:
      'a command that breaks a rule is rejected although it may have been sent before the ledger was set back',
    put: withDatabase((db) => ({
      transaction: (name, work) =>
        db.transaction(name, (tx) =>
          work(
            name === 'take in commands'
              ? intercepted(tx, (statement) => (statement === lockFences ? [] : undefined))
              : tx,
          ),
        ),
    })),
  },
  'stored fingerprint checked': {
    about: 'payoutd sends what the database holds, whatever intake stored',
    put: () => ({
      claim: (ledger, options) => {
        const { sealing, fingerprintKey } = options
        const asItStands = (row: Candidate): Candidate => {
          const details = { ...openDetails(row, row.sealed, sealing), amount: row.amount }
          const asked: PayoutCommand = {
            ...row,
            ...details,
            ...{ bankCode: 'BANK', rowNumber: null, fileHash: null, beneficiaryId: null },
            ...{ priority: 0, notBefore: null },
          }
          return {
            ...row,
            sealed: sealDetails(asked, sealing),
            fingerprint: fingerprint(asked, fingerprintKey),
          }
        }
        const db: Database = {
          ...ledger.db,
          transaction: (name, work) =>
            ledger.db.transaction(name, (tx) =>
              work({
                now: tx.now,
                async run<P, R>(statement: Sql<P, R>, params: P): Promise<R[]> {
                  const rows = await tx.run(statement, params)
                  if ((statement as unknown) !== lockCandidates) return rows
                  return (rows as Candidate[]).map(asItStands) as R[]
                },
              }),
            ),
        }
        return committedClaim({ ...ledger, db }, options)
      },
    }),
  },
  'time limits of statements': {
    about: 'payoutd waits without limit for the answer to a statement',
    put: ({ connectDatabase }) => ({
      connectDatabase: (options) => connectDatabase({ ...options, transactionTimeoutMs: 600_000 }),
    }),
  },
  'account of an attempt': {
    about:
      'payoutd forgets where it sent a payout: it queries the account in the settings and believes the answer',
    put: withDatabase((db) => ({
      transaction: (name, work) =>
        db.transaction(name, (tx) =>
          work({
            now: tx.now,
            run: async (statement, params) => sentNowhere(await tx.run(statement, params)),
          }),
        ),
    })),
  },
  'promises at the claim': {
    about: 'a payout that a promise of the gateway queued is sent even if the promise no longer holds',
    put: () => ({
      claim: (ledger, options) => {
        const promises = { ...options.account.promises, duplicatesRefused: true }
        return committedClaim(ledger, { ...options, account: { ...options.account, promises } })
      },
    }),
  },
  'amount match': {
    about: 'a report ends a payout whatever amount it names',
    put: judging({
      applyEvidence: (payout, report, ...rest) =>
        decisions.applyEvidence(payout, ofOurAmount(payout, report), ...rest),
    }),
  },
  'first report counts': {
    about: 'a contradicting report overwrites an end',
    put: judging({
      applyEvidence: (payout, report, source, ...rest) => {
        const decision = decisions.applyEvidence(payout, report, source, ...rest)
        const state = report.status === 'success' ? 'paid' : 'failed'
        if (!('anomaly' in decision) || decision.anomaly.kind !== 'contradiction') return decision
        const after: Payout = { ...payout, state, reason: report.errorMessage, version: payout.version + 1 }
        return change(payout, after, source, report.exchange)
      },
    }),
  },
  'failure in doubt': {
    about: 'a report of failure ends a payout while another order of it may be alive',
    put: judging({
      applyEvidence: (payout, ...rest) =>
        decisions.applyEvidence(
          { ...payout, doubted: false, turnedAway: false, agentpayOrderId: null },
          ...rest,
        ),
    }),
  },
  'signs of life': {
    about: 'a signed report that settles nothing does not show that the gateway has the order',
    put: judging({
      applyEvidence: (payout, ...rest) => {
        const decision = decisions.applyEvidence(payout, ...rest)
        if (!('change' in decision) || decision.change.after.state !== payout.state) return decision
        const { orderShown, orderBesides, notFoundCount } = payout
        const after = { ...decision.change.after, orderShown, orderBesides, notFoundCount }
        return { ...decision, change: { ...decision.change, after } }
      },
    }),
  },
  'orders besides': {
    about: 'a report of failure ends a payout although the gateway has shown another order of it',
    put: judging({
      applyEvidence: (payout, ...rest) =>
        decisions.applyEvidence({ ...payout, orderBesides: false }, ...rest),
    }),
  },
  'signature check': {
    about: 'payoutd believes a callback whoever signed it',
    put: () => ({
      readCallback: (rawQuery, dialect, key) =>
        readCallback(resigned(rawQuery, dialect.sign, key), dialect, key),
    }),
  },
  grace: {
    about: 'the first "not found" proves that the gateway never had the order',
    put: judging({
      recordAbsence: (payout, exchange, asked, queryPolicy, now) =>
        decisions.recordAbsence(
          payout,
          exchange,
          asked,
          { ...queryPolicy, graceMs: 0, confirmations: 1 },
          now,
        ),
    }),
  },
  'presence check': {
    about: '"not found" counts although these settings have never found an order',
    put: () => ({
      openPresenceCheck: () => ({
        found: () => undefined,
        holds: async () => true,
      }),
    }),
  },
  'recent presence check': {
    about: 'one order found with these settings counts as a presence check for ever',
    put: () => ({
      openPresenceCheck: (clock) => {
        const presenceCheck = SAFEGUARDS.openPresenceCheck(clock)
        let once = false
        return {
          found(settings, mchOrderNo) {
            once = true
            presenceCheck.found(settings, mchOrderNo)
          },
          holds: async (settings, asking) => once || presenceCheck.holds(settings, asking),
        }
      },
    }),
  },
  'unknown is unknown': {
    about: 'an apply without an answer counts as failed',
    put: ending('unknown', 'failed'),
  },
  'unknown is not sent again': {
    about: 'an apply without an answer is sent again',
    put: ending('unknown', 'queued'),
  },
  'a duplicate is no refusal': {
    about: 'an order that the gateway already has counts as refused, even if it may be alive',
    put: ending('duplicate', 'failed'),
  },
  'a refusal is confirmed': {
    about: 'a refusal, which names no order, ends the payout without a query',
    put: ending('refused', 'failed'),
  },
  '"later" is confirmed': {
    about: 'after a "later", which names no order, the payout is sent again without a query',
    put: ending('retry-later', 'queued'),
  },
  'an ended lease is unknown': {
    about: 'a payout whose process died is sent again without a query',
    put: judging({
      onTimer: (payout, queryPolicy, now) =>
        payout.state === 'submitting'
          ? change(payout, become(payout, 'queued', { reason: 'lease-ended', ready: true }), 'CLOCK', null)
          : decisions.onTimer(payout, queryPolicy, now),
    }),
  },
}
