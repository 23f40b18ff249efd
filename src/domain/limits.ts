/**
 * The most UTF-16 units that each text from outside may have, checked before any pattern, hash or index sees it. With
 * at most one fault of each kind a field, and 64 units of what stood there, a result stays below 16 kB.
 */
export const MOST = {
  identifier: 64,
  batchId: 64,
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
  /** A cell of a payroll file, of its header too. */
  cell: 1_024,
  /** Columns of a payroll file. */
  columns: 200,
  /** What a cancellation says; longer is cut, for it must not be lost. */
  reason: 300,
  requestedBy: 128,
  /** A person's name, and what a person says about an act: more is refused. */
  said: 1_000,
  /** Of any text that is masked; what stands beyond is left out. */
  scrubbed: 16_384,
  /** Of what stood in the place of a fault. */
  found: 64,
} as const
