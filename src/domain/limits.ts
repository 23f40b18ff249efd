/**
 * The most UTF-16 units that each text from outside may have. payoutd checks this before any pattern, hash or index sees the
 * text. With at most one fault of each kind per field, and 64 units of each value found, a result stays below 16 kB.
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
  /** A cell of a payroll file, also of its header. */
  cell: 1_024,
  /** Columns of a payroll file. */
  columns: 200,
  /** The reason of a cancellation. payoutd cuts a longer one, because it must not lose the cancellation. */
  reason: 300,
  requestedBy: 128,
  /** A person's name, and a person's reason for an act. payoutd refuses more. */
  said: 1_000,
  /** Any text that is masked; the rest is left out. */
  scrubbed: 16_384,
  /** The value that a fault shows. */
  found: 64,
} as const
