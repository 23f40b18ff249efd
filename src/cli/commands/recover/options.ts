import type { DecisionOptions } from '../../decision.ts'

export type RecoverOptions = DecisionOptions & {
  merchant?: string
  rate: number
  nothingLost?: true
  leaveOut?: string[]
}
