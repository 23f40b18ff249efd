/** The gateway client as a library: see README.md beside this file. Nothing here knows of payoutd. */
export type { ApplyAnswer, BalanceAnswer, QueryAnswer, UnknownReason } from '../payout/answers.ts'
export type { Exchange, OrderReport, OrderStatus, RequestFault } from '../payout/evidence.ts'
export { type Paise, paise } from '../payout/money.ts'
export { type Clock, systemClock } from '../platform/clock.ts'
export type { ApplyOrder } from './apply.ts'
export { type ParsedCallback, parsePayinCallback, parsePayoutCallback } from './callback.ts'
export { createGatewayClient, type GatewayClient } from './client.ts'
export type { TlsFiles } from './connections.ts'
export type { Dialect } from './dialect.ts'
export { loadDialect } from './dialect-file.ts'
export type {
  PayinCallback,
  PayinCreateAnswer,
  PayinQueryAnswer,
  PayinRecoverAnswer,
  PayinReport,
  PayParams,
} from './payin-answers.ts'
export type { PayinOrder } from './payin-create.ts'
export type { PayinQueryBy } from './payin-query.ts'
export type { PayinRecovery } from './payin-recovery.ts'
export type { QueryBy } from './query.ts'
export type { NotSentReason } from './send-failure.ts'
export { type Fields, type SignRules, signature, type Traffic, verify } from './sign.ts'
export { type SignVariant, variantsThatVerify } from './sign-variants.ts'
export { type Malformed, readingsOf } from './signed-query.ts'
