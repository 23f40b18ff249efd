/** Paise as rupees with two decimals, `1234567` → `12345.67`: for deep links and for people. */
export const rupees = (paise: bigint): string => `${paise / 100n}.${String(paise % 100n).padStart(2, '0')}`
