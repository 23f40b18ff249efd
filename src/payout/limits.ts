/**
 * The most UTF-16 units that each text of a command may have, checked before any pattern, hash or index sees it. With
 * at most one fault of each kind a field, and 64 units of what stood there, a result stays below 16 kB.
 */
export const MOST = {
  identifier: 64,
  currency: 8,
  accountName: 96,
  accountNo: 35,
  bankCode: 8,
  ifsc: 11,
  vpa: 321,
  phoneNumber: 30,
  payerEmail: 256,
  remark: 512,
  beneficiaryId: 64,
  fileHash: 64,
  metadataFields: 50,
  metadataName: 64,
  metadataValue: 1_024,
  /** What a cancellation says; longer is cut, for it must not be lost. */
  reason: 300,
  requestedBy: 128,
  /** Of what stood in the place of a fault. */
  found: 64,
} as const
