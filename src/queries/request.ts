import type { PayoutKey } from '../domain/identifiers.ts'
import { maskAccount, maskVpa, scrub } from '../domain/mask.ts'
import { formatRupees } from '../domain/money.ts'
import type { Payout } from '../domain/payout/payout.ts'
import { openDetails } from '../ledger/encrypted-details.ts'

import type { SealingKeys } from '../platform/seal.ts'

/** The beneficiary, in the form that may be shown. Null: the available encryption keys do not open it. */
export type Beneficiary = {
  account: string
  ifsc: string | null
  vpa: string | null
  remark: string | null
} | null

/**
 * What a command asked for, in the form that may be shown. `reference`: of its row in a payroll file; null: there is none, or it
 * is sealed.
 */
export type AskedFor = {
  payout: Pick<Payout, 'amount' | 'batchId'> & { rowNumber: number | null }
  beneficiary: Beneficiary
  reference: string | null
}

/** Opens the sealed details of a payout, and masks them. */
export function unsealed(
  key: PayoutKey,
  sealed: Buffer,
  keys: SealingKeys,
): Pick<AskedFor, 'beneficiary' | 'reference'> {
  try {
    const { accountNo, accountName, ifsc, vpa, phoneNumber, payerEmail, remark, metadata } = openDetails(
      key,
      sealed,
      keys,
    )
    const known = [accountNo, accountName, vpa, phoneNumber, payerEmail].filter((value) => value !== null)
    const { reference = null } = metadata
    // A spreadsheet drops leading zeros.
    const details = [...known, accountNo.replace(/^0+(?=\d{4})/, '')]
    return {
      beneficiary: {
        account: maskAccount(accountNo),
        ifsc,
        vpa: vpa && maskVpa(vpa),
        remark: remark && scrub(remark, known),
      },
      // People call the payout by its reference, so leave it out only if it holds a bank detail of the beneficiary.
      reference: details.some((value) => reference?.includes(value)) ? null : reference,
    }
  } catch {
    return { beneficiary: null, reference: null }
  }
}

/** `₹50,000.00 to account ••••6789, IFSC HDFC0001234` */
export const amountAndBeneficiary = ({ payout, beneficiary }: AskedFor): string =>
  `${formatRupees(payout.amount)} ${to(beneficiary)}`

function to(beneficiary: Beneficiary): string {
  if (!beneficiary) return 'to a beneficiary whose bank details the current ENCRYPTION_KEYS do not decrypt'
  const { account, ifsc, vpa } = beneficiary
  return vpa === null ? `to account ${account}, IFSC ${ifsc}` : `to VPA ${vpa}, account ${account}`
}

/** `november, row 3, reference EMP000007`; null: it arrived in no batch. */
export const placeInBatch = ({ payout: { batchId, rowNumber }, reference }: AskedFor): string | null =>
  batchId &&
  [
    batchId,
    ...(rowNumber === null ? [] : [`row ${rowNumber}`]),
    ...(reference === null ? [] : [`reference ${reference}`]),
  ].join(', ')

/** Both in one line. */
export function requestText(askedFor: AskedFor): string {
  const place = placeInBatch(askedFor)
  return amountAndBeneficiary(askedFor) + (place === null ? '' : `; batch ${place}`)
}
