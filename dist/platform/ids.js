import { randomUUID } from 'node:crypto';
export const systemIds = { uuid: () => randomUUID() };
