/** The connection to PostgreSQL, beneath the verbs: writes that follow each other, and servers that will not do. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { run } from '../../src/store/db.js';
import { inspectStore } from '../../src/store/inspect.js';
import { openStoreAt } from '../../src/store/open.js';
import { connectPostgres, type PostgresOptions } from '../../src/store/postgres/connection.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { silentLog } from './place.js';

const MIGRATIONS = fileURLToPath(new URL('../../migrations/postgres', import.meta.url));

describeWithPostgres('PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());

  const connect = (url: string, options: Partial<PostgresOptions> = {}) =>
    connectPostgres({ url, clock: systemClock, sqliteMigrations: '', ...options });

  it('stores a write that is asked for while the one before comes to its end, however soon', async () => {
    const database = await connect(await server.newDatabase());
    const put = 'insert into setting (key, value) values (?, ?)';
    for (let steps = 0; steps < 20; steps++) {
      await database.write([], () => run(put, `first ${steps}`, ''));
      for (let step = 0; step < steps; step++) await null;
      await database.write([], () => run(put, `then ${steps}`, ''));
    }
    expect(await database.query('select count(*) as all from setting')).toEqual([{ all: 40 }]);
    await database.close();
  });

  it('is lost once it was there, and not where it never came', async () => {
    const lost: string[] = [];
    const onLost = ({ message }: { message: string }) => lost.push(message);
    const url = await server.newDatabase();
    const database = await connect(url, { waitMs: 2_000, onLost });
    await server.stop('fast');
    try {
      const away = { code: 'store_unavailable', message: expect.stringContaining('does not answer') };
      await expect(connect(url, { waitMs: 200, onLost })).rejects.toMatchObject(away);
      expect(lost).toEqual([]);
      const asked = [1, 2].map(() => expect(database.query('select 1')).rejects.toMatchObject(away));
      await Promise.all(asked);
      expect(lost, 'it is said once').toEqual([expect.stringContaining('does not answer')]);
      // The process ends for it, and need not wait once more for each of its last words.
      const began = performance.now();
      await expect(database.query('select 1')).rejects.toMatchObject(away);
      expect(performance.now() - began).toBeLessThan(1_500);
    } finally {
      await server.start();
      await database.close();
    }
  });

  it('is inspected without being changed: version, clock, migrations, and what is stored', async () => {
    const url = await server.emptyDatabase();
    const at = {
      url,
      file: '',
      migrationsFolder: MIGRATIONS,
      sqliteMigrations: '',
      connections: 3,
      waitMs: 0,
    };
    const late = { ...systemClock, now: () => systemClock.now() - 5_000 };
    const empty = await inspectStore(at, late);
    expect(empty).toMatchObject({
      name: expect.stringMatching(/^PostgreSQL \d\d\.\d+$/),
      reads: null,
      parked: 0,
    });
    expect(empty?.place).not.toContain('coterie@');
    expect(empty?.pending).toBeGreaterThan(0);
    expect(empty?.server?.aheadMs).toBeGreaterThan(4_000);
    expect(empty?.server?.aheadMs).toBeLessThan(6_000);
    await empty?.close();
    expect(await server.query('select 1 from pg_tables where schemaname = current_schema()', url)).toEqual(
      [],
    );
    const store = await openStoreAt(at, { clock: systemClock, log: silentLog });
    await store.setValues('settings', new Map([['a', 'b']]));
    const found = await inspectStore(at, systemClock);
    expect(found).toMatchObject({ pending: 0, parked: 0 });
    expect(await found?.reads?.values('settings', ['a'])).toEqual(new Map([['a', 'b']]));
    expect(await found?.reads?.turnBehind('nothing')).toBeNull();
    await found?.close();
    await store.close();
  });

  it('is refused as a replica', async () => {
    const url = await server.newDatabase();
    const folder = new URL(url).searchParams.get('host') ?? '';
    await server.stop('fast');
    await writeFile(join(folder, 'data/standby.signal'), '');
    await server.start();
    await expect(connect(url)).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringMatching(/^store\.url \(.*\): this is a replica\. Name the primary server$/),
    });
  });
});
