/** For JSON.stringify: a JSON number need not hold an amount exactly. */
export const paiseAsText = (_, value) => typeof value === 'bigint' ? value.toString() : value;
