import { sql } from "../../platform/postgres.js";
export const intakePlaces = sql `
  select partition, next_offset as offset, log_id from intake_offsets where topic = ${'topic'}`;
