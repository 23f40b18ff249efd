import { Command, InvalidArgumentError, Option } from 'commander';
import { readConfig } from "../config/config.js";
import { ROLES, startPayoutd } from "../main.js";
import { createLogger } from "../platform/log.js";
/** sysexits.h calls it EX_SOFTWARE. Nothing else of payoutd ends with it. */
const STANDSTILL_EXIT = 70;
export const serveCommand = new Command('serve')
    .description('run payoutd until it is told to stop (SIGINT, SIGTERM)')
    .addOption(new Option('--roles <list>', `what this process does, of ${ROLES.join(', ')}`)
    .argParser(roles)
    .default(new Set(ROLES), 'all'))
    .action(async (options) => {
    const config = readConfig(process.env);
    const log = createLogger({ name: 'payoutd', level: config.logLevel });
    const payoutd = await startPayoutd(config, options.roles, log);
    const standstill = await Promise.race([stopRequested(), payoutd.standstill]);
    if (standstill) {
        payoutd.tellAbandoned();
        log.fatal(standstill, 'a loop stands still, so this process ends: whatever supervises it starts it again, and leases cover what it had in hand');
        process.exit(STANDSTILL_EXIT);
    }
    log.info({}, 'stopping: finishing what is in hand');
    await payoutd.stop();
    if (payoutd.unfinished.length > 0) {
        payoutd.tellAbandoned();
        log.error({ parts: payoutd.unfinished }, 'not everything in hand could be finished: leases and queries will resolve it');
        process.exit(1);
    }
    log.info({}, 'stopped');
});
function roles(list) {
    const names = list.split(',').map((name) => name.trim());
    const wrong = names.filter((name) => !ROLES.some((role) => role === name));
    if (wrong.length > 0)
        throw new InvalidArgumentError(`"${wrong.join(', ')}": the roles are ${ROLES.join(', ')}`);
    return new Set(names);
}
/** Resolves with the first SIGINT or SIGTERM; a second one ends the process at once. */
function stopRequested() {
    return new Promise((resolve) => {
        for (const signal of ['SIGINT', 'SIGTERM'])
            process.once(signal, () => resolve(undefined));
    });
}
