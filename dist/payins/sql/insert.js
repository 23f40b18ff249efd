import { sql } from "../../platform/postgres.js";
import { payinColumns } from "./columns.js";
/** The intent to ask the gateway for a payin; no row where it exists already. */
export const insertPayin = sql `
  insert into payins as p (merchant_id, payin_id, fingerprint, amount, currency, traceparent, state, version, due_at,
                           expires_at)
  values (${'merchantId'}, ${'payinId'}, ${'fingerprint'}, ${'amount'}, ${'currency'}, ${'traceparent'}, 'creating', 1,
          now() + ${'leaseMs'} * interval '1 millisecond', now() + ${'expireMs'} * interval '1 millisecond')
  on conflict (merchant_id, payin_id) do nothing
  returning ${payinColumns}`;
export const payinWithFingerprint = sql `
  select ${payinColumns}, p.fingerprint from payins p
  where p.merchant_id = ${'merchantId'} and p.payin_id = ${'payinId'}`;
