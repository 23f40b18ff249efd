/** The gateway client as a library: see README.md beside this file. Nothing here depends on payoutd. */

export type { Exchange, OrderReport, OrderStatus, RequestFault } from '../domain/evidence.ts'
export type {
  ApplyAnswer,
  BalanceAnswer,
  NotSentReason,
  QueryAnswer,
  UnknownReason,
} from '../domain/gateway-answers.ts'
export { type Paise, paise } from '../domain/money.ts'
export type {
  PayinCallback,
  PayinCreateAnswer,
  PayinQueryAnswer,
  PayinRecoverAnswer,
  PayinReport,
  PayParams,
} from '../domain/payin/gateway-answers.ts'
export { type Clock, systemClock } from '../platform/running/clock.ts'
export { type ParsedCallback, parsePayinCallback, parsePayoutCallback } from './callbacks/callback.ts'
export type { ApplyOrder } from './calls/apply.ts'
export type { PayinOrder } from './calls/payin-create.ts'
export type { PayinQueryBy } from './calls/payin-query.ts'
export type { PayinRecovery } from './calls/payin-recovery.ts'
export type { QueryBy } from './calls/query.ts'
export { createGatewayClient, type GatewayClient } from './client.ts'
export type { Dialect } from './dialect/dialect.ts'
export { loadDialect } from './dialect/dialect-file.ts'
export type { TlsFiles } from './transport/connections.ts'
export { type Fields, type SignRules, signature, type Traffic, verify } from './wire/sign.ts'
export { type SignVariant, variantsThatVerify } from './wire/sign-variants.ts'
export { type Malformed, readingsOf } from './wire/signed-query.ts'
