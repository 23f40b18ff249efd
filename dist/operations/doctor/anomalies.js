import { openAnomalies } from "../sql/anomalies.js";
import { formatTime } from "../times.js";
import { good, warning } from "./examine.js";
export const anomalyChecks = (db) => [
    {
        name: 'anomalies',
        needs: ['migrations'],
        run: async () => judgeAnomalies(await db.run(openAnomalies, {})),
    },
];
export function judgeAnomalies(open) {
    if (open.length === 0)
        return good('every anomaly is acknowledged');
    const sentences = open.map(({ merchantId, count, oldestId, oldestKind, oldestAt }) => `${count} of merchant ${merchantId}, the oldest ${oldestKind} from ${formatTime(oldestAt)} (${oldestId})`);
    return warning(`nobody has acknowledged ${sentences.join('; ')}`, 'payoutd anomaly show tells one with its evidence, payoutd anomaly acknowledge records that it was looked at');
}
