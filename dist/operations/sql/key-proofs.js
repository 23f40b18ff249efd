import { sql } from "../../platform/postgres.js";
/** The first process that uses a key leaves its proof; those that stand are left as they are. */
export const keepProofs = sql `
  insert into key_proofs (key_id, proof)
  select * from unnest(${'keyIds'}::smallint[], ${'proofs'}::bytea[])
  on conflict do nothing`;
export const storedProofs = sql `select key_id, proof from key_proofs order by key_id`;
