/** Values that break a rule of the contract, "Limits", by field. */
export const WRONG = {
  amount: [0n, -100n, 150n, 9007199254741092n, '100.00', '1e4', '010000', '10,000', '₹100', ' 100'],
  phoneNumber: ['5876501234', '987650123', '98765012345', '+919876501234', '98765O1234'],
  payerEmail: ['dev.nair.example.in', 'dev@example', 'd@example.in'],
  accountName: ['D', 'D'.repeat(49)],
  accountBankCode: ['bank', 'HDFC', 'BANK '],
  extra: ['HDFC0001234', '{}', '{"value":1}', '["HDFC0001234"]', '{"value":"HDFC0001234","other":"1"}'],
  reqTime: ['2026-11-21 12:00:00', '20261321120000', '2026112112', 'now'],
  executeNotify: ['yes', '2'],
} as const
/** One character more than String(30) holds. */
export const TOO_LONG = '9'.repeat(31)
