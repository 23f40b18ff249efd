import { wellFormedJson } from '../text/text.ts'

/** JSON text for a jsonb column. */
export const json = (value: object | null): string | null => value && wellFormedJson(JSON.stringify(value))
