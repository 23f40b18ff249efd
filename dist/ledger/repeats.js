/** Tells the history, and evidence that moved nothing only once: said again it is counted, so that tables do not grow. */
export async function tellOnce(entries, { unmovedBy, count, tell }) {
    const said = new Map();
    const places = entries.map((entry) => {
        const evidence = unmovedBy(entry);
        if (evidence === null)
            return null;
        const key = JSON.stringify(Object.values(evidence));
        const before = said.get(key);
        if (before)
            before.times++;
        else
            said.set(key, { entry, evidence, times: 1 });
        return key;
    });
    const all = [...said.values()];
    const known = new Set();
    if (all.length > 0) {
        for (const { place } of await count(byColumns(all)))
            known.add(all[place - 1].entry);
    }
    const untold = entries.filter((entry, i) => {
        const key = places[i];
        return key == null || (said.get(key)?.entry === entry && !known.has(entry));
    });
    if (untold.length > 0)
        await tell(untold);
    const again = all.flatMap((each) => each.times > 1 && !known.has(each.entry) ? [{ ...each, times: each.times - 1 }] : []);
    if (again.length > 0)
        await count(byColumns(again));
}
const byColumns = (said) => ({
    merchantIds: said.map(({ evidence }) => evidence.merchantId),
    ids: said.map(({ evidence }) => evidence.id),
    toStates: said.map(({ evidence }) => evidence.toState),
    sources: said.map(({ evidence }) => evidence.source),
    exchanges: said.map(({ evidence }) => evidence.exchange),
    times: said.map(({ times }) => times),
});
