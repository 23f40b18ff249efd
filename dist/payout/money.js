export const paise = (amount) => BigInt(amount);
export const ZERO = paise(0);
export const sum = (amounts) => {
    let total = 0n;
    for (const amount of amounts)
        total += amount;
    return total;
};
/** `12345600n` → `₹1,23,456.00`, grouped as India reads numbers. For people only; never parsed again. */
export function formatRupees(amount) {
    const digits = (amount < 0n ? -amount : amount).toString().padStart(3, '0');
    const rupees = digits.slice(0, -2);
    const head = rupees.slice(0, -3).replace(/\B(?=(\d{2})+$)/g, ',');
    const grouped = head === '' ? rupees : `${head},${rupees.slice(-3)}`;
    return `${amount < 0n ? '-' : ''}₹${grouped}.${digits.slice(-2)}`;
}
