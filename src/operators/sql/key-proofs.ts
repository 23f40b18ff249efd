import { sql } from '../../platform/postgres/postgres.ts'

export type KeyProof = { keyId: number; proof: Buffer }

/** The first process that uses a key stores its proof; existing proofs stay. */
export const keepProofs = sql<{ proofs: readonly KeyProof[] }>`
  insert into key_proofs (key_id, proof)
  select * from ${{ rows: 'proofs', columns: { keyId: 'smallint', proof: 'bytea' } }} given
  on conflict do nothing`

export const storedProofs = sql<object, KeyProof>`select key_id, proof from key_proofs order by key_id`
