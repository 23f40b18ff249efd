/** For JSON.stringify: a JSON number may not hold an amount exactly. */
export const paiseAsText = (_: string, value: unknown): unknown =>
  typeof value === 'bigint' ? value.toString() : value
