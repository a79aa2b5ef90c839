/** PostgreSQL keeps the store's contract, as SQLite does. Other processes are other connections. */
import { afterAll, beforeAll } from 'vitest';
import { storeContract } from '../contract/store.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { openPostgres } from './place.js';

describeWithPostgres('with a PostgreSQL of its own', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());

  storeContract('the store on PostgreSQL', async () => {
    const place = await openPostgres(server);
    return { store: await place.open(), another: () => place.open(), remove: place.remove };
  });
});
