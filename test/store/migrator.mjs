/** The process that `migrate-postgres.test.ts` kills in the middle of a migration. */
import { systemClock } from '../../dist/modules/core/clock.js';
import { migratePostgres } from '../../dist/modules/store/migrate.js';
import { connectPostgres } from '../../dist/modules/store/postgres/connection.js';

const [url, folder] = process.argv.slice(2);
await migratePostgres(await connectPostgres({ url, clock: systemClock }), folder);
