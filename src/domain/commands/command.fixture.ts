import { paise } from '../money.ts'
import type { PayoutCommand } from './command.ts'

/** A valid command of merchant `acme`. `fields` replace its defaults. */
export const command = (payoutId: string, fields: Partial<PayoutCommand> = {}): PayoutCommand => ({
  payoutId,
  merchantId: 'acme',
  batchId: 'november',
  rowNumber: 1,
  fileHash: null,
  amount: paise(5_000_000n),
  currency: 'INR',
  beneficiaryId: null,
  accountName: 'Asha Rao',
  accountNo: '50100123456789',
  bankCode: 'BANK',
  ifsc: 'HDFC0001234',
  vpa: null,
  phoneNumber: null,
  payerEmail: null,
  remark: null,
  priority: 0,
  notBefore: null,
  deadline: null,
  metadata: {},
  ...fields,
})
