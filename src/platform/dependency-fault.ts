import { withoutLastSlashes } from '../text/text.ts'
import { ExpectedFailure } from './expected-failure.ts'
import { OpenTransaction } from './kafka/open-transaction.ts'
import { isUnanswered, sqlState } from './postgres/faults.ts'

/** The addresses of the dependencies in a form safe to show: without passwords. */
export type Addresses = { database: string; kafka: string; registry: string }

/** The part of the configuration that names servers. */
type Servers = { databaseUrl: string; kafka: { brokers: string[] }; registry: { url: string } }

export function addressesOf(servers: Servers): Addresses {
  const database = new URL(servers.databaseUrl)
  const registry = new URL(servers.registry.url)
  return {
    database: `${database.hostname}:${database.port || '5432'}${database.pathname}`,
    kafka: servers.kafka.brokers.join(', '),
    registry: `${registry.protocol}//${registry.host}${withoutLastSlashes(registry.pathname)}`,
  }
}

/** A failure that a person can act on: what is wrong, and what to do about it. */
export type DependencyFault = { what: string; todo: string }

export const inOneLine = ({ what, todo }: DependencyFault): string => `${what}: ${todo}`

/**
 * Turns an error of one of these servers into an ExpectedFailure that says what to do; returns any other error as
 * it is.
 */
export function inWords(error: unknown, servers: Servers): unknown {
  const fault = dependencyFaultOf(error, addressesOf(servers))
  return fault ? new ExpectedFailure(inOneLine(fault), { cause: error }) : error
}

/**
 * Describes an error of PostgreSQL, Kafka, the registry or a port. Null: the error comes from none of these, and
 * its stack belongs on the screen.
 */
export function dependencyFaultOf(error: unknown, at: Addresses): DependencyFault | null {
  if (!(error instanceof Error)) return null
  if (error instanceof OpenTransaction) return error
  return kafkaFault(error, at) ?? registryFault(error, at) ?? portFault(error) ?? databaseFault(error, at)
}

/** KafkaJS's error classes differ only by name; the error it gives up with has its last error as cause. */
function kafkaFault(error: Error, { kafka }: Addresses): DependencyFault | null {
  if (!error.name.startsWith('KafkaJS')) return null
  const root = error.cause instanceof Error ? error.cause : error
  const type = 'type' in root ? String(root.type) : ''
  if (root.name === 'KafkaJSSASLAuthenticationError') {
    return {
      what: `Kafka at ${kafka} refuses the user or the password`,
      todo: 'correct KAFKA_USERNAME, KAFKA_PASSWORD and KAFKA_SASL_MECHANISM',
    }
  }
  if (type.endsWith('AUTHORIZATION_FAILED')) {
    return {
      what: `Kafka at ${kafka} does not allow it (${root.message})`,
      todo: 'grant payoutd read, write and describe on its topics and its group',
    }
  }
  if (type === 'UNKNOWN_TOPIC_OR_PARTITION') {
    return { what: `a topic is missing on Kafka at ${kafka}`, todo: 'run payoutd migrate' }
  }
  return {
    what: `Kafka at ${kafka} does not answer (${root.message.replace(/^Connection error: /, '')})`,
    todo: 'start it, or correct KAFKA_BROKERS (and KAFKA_SSL)',
  }
}

/** `connectRegistry` names the registry in each of its own errors and keeps the original error as cause. */
function registryFault(error: Error, { registry }: Addresses): DependencyFault | null {
  if (!error.message.startsWith('schema registry ')) return null
  const unreachable = causes(error)
    .map((each) => NO_ANSWER.exec('code' in each ? String(each.code) : each.message)?.[0])
    .findLast((word) => word !== undefined)
  if (unreachable !== undefined) {
    return {
      what: `the schema registry at ${registry} does not answer (${unreachable})`,
      todo: 'start it, or correct SCHEMA_REGISTRY_URL',
    }
  }
  return {
    what: error.message.replace(/:\/\/[^/@\s]+@/g, '://'),
    todo: 'check SCHEMA_REGISTRY_URL and the registry’s content',
  }
}

const NO_ANSWER = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRESET|fetch failed|time-?out/i

const causes = (error: Error): Error[] => [
  error,
  ...(error.cause instanceof Error ? causes(error.cause) : []),
]

/** `listen` itself says what to do about a port that is in use. */
function portFault(error: Error): DependencyFault | null {
  const cause: unknown = error.cause
  const taken = cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE'
  const [what, todo] = taken ? error.message.split(': ', 2) : []
  return what !== undefined && todo !== undefined ? { what, todo } : null
}

/** An error that is not from KafkaJS, the registry's client or a port comes from PostgreSQL's driver. */
function databaseFault(error: Error, { database }: Addresses): DependencyFault | null {
  const state = sqlState(error)
  if (state !== undefined) return refusal(state, error.message, `the database ${database}`)
  const code = 'code' in error ? String(error.code) : ''
  const fault = (what: string, todo: string) => ({ what: `the database ${database} ${what}`, todo })
  if (error.message === 'The server does not support SSL connections') {
    return fault('has no TLS', 'turn it on there, or leave sslmode out of DATABASE_URL')
  }
  if (error.message === 'There was an error establishing an SSL connection' || code === 'EPROTO') {
    return fault('does not answer like PostgreSQL with TLS', 'correct host, port and sslmode in DATABASE_URL')
  }
  if (UNTRUSTED.test(code)) {
    return fault(
      `shows a certificate that no trusted authority signed (${code})`,
      'set sslrootcert in DATABASE_URL to the file of its authority, and use the host name of the certificate',
    )
  }
  if (error.message.startsWith('SASL: ')) {
    return fault('wants a password that is not there, or not its own', 'correct the password in DATABASE_URL')
  }
  if (code === 'ENOENT' && error.message.startsWith('connect ')) {
    return fault('has no such socket', 'start it, or correct DATABASE_URL')
  }
  if (code === 'ECONNREFUSED') return fault('refuses connections', 'start it, or correct DATABASE_URL')
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return fault('has an unknown host name', 'correct DATABASE_URL')
  }
  if (code === 'ECONNRESET' || code === 'EPIPE' || error.message === 'Connection terminated unexpectedly') {
    return fault('broke the connection', 'check its log, and try again')
  }
  if (UNREACHABLE.has(code) || CONNECT_TIMEOUTS.has(error.message)) {
    return fault(
      'does not answer',
      'check that PostgreSQL listens there and that payoutd can reach it, or correct DATABASE_URL',
    )
  }
  if (isUnanswered(error)) {
    return fault(
      'does not finish a statement',
      'payoutd doctor says whether a commit waits for a standby; otherwise look for sessions that keep locks, or for a frozen server. ' +
        'What was to be changed may be changed all the same',
    )
  }
  return null
}

const UNREACHABLE = new Set(['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN'])

/** Node's error codes for a bad certificate ("X509 certificate error codes"). */
const UNTRUSTED =
  /^(ERR_TLS_CERT|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_CA)/

/** The messages of `pg` and its pool, which give these errors no code. */
const CONNECT_TIMEOUTS = new Set([
  'timeout expired',
  'timeout exceeded when trying to connect',
  'Connection terminated due to connection timeout',
])

/** By SQLSTATE (PostgreSQL, "Error Codes"). A code that is not listed is a bug of ours. */
function refusal(state: string, message: string, database: string): DependencyFault | null {
  switch (state) {
    case '28P01':
    case '28000':
      return notLetIn(message, database)
    case '3D000':
      return { what: `${database} does not exist`, todo: 'create it, or correct DATABASE_URL' }
    case '42P01':
    case '42703':
      return { what: `${database} lacks tables of this version`, todo: 'run payoutd migrate' }
    case '42501':
      return { what: `${database} does not allow it (${message})`, todo: "grant it to payoutd's user" }
    case '42704':
      // Every connection of ours sets it (platform/postgres/postgres.ts); PostgreSQL 17 introduced it.
      if (message.includes('transaction_timeout'))
        return { what: `${database} is older than PostgreSQL 17`, todo: 'update PostgreSQL' }
      return message.startsWith('unrecognized configuration parameter')
        ? { what: `${database} does not know an option (${message})`, todo: 'correct DATABASE_URL' }
        : null
    case '08P01':
      return {
        what: `${database} does not behave like PostgreSQL (${message})`,
        todo: 'set DATABASE_URL to PostgreSQL itself, not to a pooler',
      }
    case '25006':
      return {
        what: `${database} is read-only`,
        todo: 'set DATABASE_URL to the primary, not a standby',
      }
    case '53300':
      return {
        what: `${database} has no connection free`,
        todo: 'raise max_connections, or lower DATABASE_CONNECTIONS',
      }
    case '53100':
      return { what: `${database} has no room left on its disk`, todo: 'free space, or enlarge the disk' }
    case '57P01':
    case '57P02':
    case '57P03':
      return { what: `${database} is starting or stopping`, todo: 'try again in a moment' }
    case '55P03':
      return {
        what: `another session of ${database} keeps a lock that this needs`,
        todo: 'try again, and if it stays so, find the session with pg_blocking_pids',
      }
    case '25P04':
      return { what: `${database} took too long`, todo: 'check its load, and try again' }
    default:
      return null
  }
}

function notLetIn(message: string, database: string): DependencyFault {
  if (message.includes('no encryption'))
    return {
      what: `${database} refuses connections without TLS`,
      todo: 'add sslmode=verify-full to DATABASE_URL',
    }
  if (message.includes('pg_hba.conf'))
    return { what: `${database} refuses payoutd’s connection from here`, todo: 'allow it in its pg_hba.conf' }
  return { what: `${database} refuses the user or the password`, todo: 'correct DATABASE_URL' }
}
