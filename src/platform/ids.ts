import { randomUUID } from 'node:crypto'

export interface Ids {
  /** A new UUID. */
  uuid(): string
}

export const systemIds: Ids = { uuid: () => randomUUID() }
