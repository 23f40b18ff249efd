import { Command } from 'commander';
import { readConfig } from "../config/config.js";
import { migrateAll } from "../ledger/migrate-all.js";
import { createLogger } from "../platform/log.js";
export const migrateCommand = new Command('migrate')
    .description('bring tables, topics and schemas up to date; safe to repeat, and to run several times at once')
    .action(async () => {
    const config = readConfig(process.env);
    const done = await migrateAll(config, createLogger({ name: 'payoutd', level: config.logLevel, destination: 2 }));
    console.log(done.tables.length > 0 ? `tables: ran ${done.tables.join(', ')}` : 'tables: nothing to do');
    console.log(done.topics.length > 0 ? `topics: created ${done.topics.join(', ')}` : 'topics: nothing to do');
    console.log(`schemas: ${done.schemas} registered`);
});
