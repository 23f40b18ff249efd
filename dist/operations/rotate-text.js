const things = (census, current) => [...census].filter(([keyId]) => keyId !== current).sort(([a], [b]) => a - b);
export const isComplete = ({ census, current, interrupted }) => !interrupted && things(census, current).length === 0;
/** What would be done, of what the keys seal now. */
export function previewText(census, current, retire) {
    const old = things(census, current);
    const retiring = retire ? '; proofs of keys that seal nothing then would be removed' : '';
    if (old.length === 0)
        return `nothing is sealed with another key than ${current}${retiring}`;
    return [
        `first every running payoutd must be started with key ${current}: what one without it claims is held until then`,
        `what is sealed with ${old.map(([keyId, count]) => `key ${keyId} (${count})`).join(', ')} would be sealed anew with key ${current}${retiring}`,
    ].join('\n');
}
export function rotationText(rotation) {
    const { current, resealed, interrupted, unopened, census, unused, retired } = rotation;
    const lines = [`${resealed} payouts are sealed anew with key ${current}`];
    for (const [keyId, count] of things(unopened, current)) {
        lines.push(`${count} payouts do not open: put the key that was ${keyId} back into ENCRYPTION_KEYS under ${keyId}, and run this again`);
    }
    if (interrupted)
        return [...lines, 'interrupted: the same command goes on'].join('\n');
    for (const [keyId, count] of things(census, current)) {
        if (unopened.has(keyId))
            continue;
        lines.push(`key ${keyId} still seals ${count}: a process that was started before key ${current} came uses it; start it again, then run this again`);
    }
    for (const keyId of unused) {
        lines.push(`key ${keyId} seals nothing in the database any more; ` +
            (retired
                ? 'its proof is removed, so payoutd starts without it'
                : 'payoutd keys rotate --retire removes its proof, so that payoutd starts without it') +
            '. Dead letters in Kafka may need it until their retention ends');
    }
    return lines.join('\n');
}
