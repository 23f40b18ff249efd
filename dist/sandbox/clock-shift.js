/** What is told, with the one time that the contract has in answers and callbacks off by so many milliseconds. */
export function withTimeOff(fields, shiftMs) {
    const { paySuccTime } = fields;
    if (!paySuccTime)
        return fields;
    const off = Number(paySuccTime) + shiftMs;
    return { ...fields, paySuccTime: typeof paySuccTime === 'string' ? String(off) : off };
}
