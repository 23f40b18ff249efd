import { namesAt } from "./paths.js";
import { isPayinQuery } from "./payin-rules.js";
const OPERATIONS = {
    apply: 'apply',
    payoutQuery: 'queryPayout',
    balance: 'queryBalance',
    payinCreate: 'createPayin',
    payinQuery: 'queryPayin',
    payinRecovery: 'recoverPayin',
};
/** What a request to `path` asks for; undefined where no operation is. */
export function operationAt(path, params, paths) {
    const [name, other] = namesAt(path, paths);
    if (other)
        return isPayinQuery(params) ? 'queryPayin' : 'queryPayout';
    return name && OPERATIONS[name];
}
