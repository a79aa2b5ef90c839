/** A store that is copied to PostgreSQL, and back by a backup, answers the same on both, and goes on there. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { phraseOf } from '../../src/core/phrase.js';
import { putSetting, type Store, settingOf } from '../../src/core/store.js';
import { copyToServer, sqliteSide, sumOf, sumThere, tablesOf } from '../../src/store/copy.js';
import { storeOn } from '../../src/store/open.js';
import { connectPostgres, type PostgresDatabase } from '../../src/store/postgres/connection.js';
import { added, claimNext, ending } from '../contract/store/tasks.js';
import {
  ANN,
  begun,
  CHAT,
  command,
  cursorOf,
  DAY,
  delivery,
  exchange,
  finish,
  forget,
  lease,
  MINUTE,
  message,
  NOW,
  overhear,
  receive,
  windowTexts,
} from '../contract/store/words.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { MIGRATIONS, openMade, type Place, silentLog } from './place.js';

const TOPIC = `${CHAT}/topic`;

/** Tables that hold what the store was given. */
const OURS = `
  select tablename as name from pg_tables where schemaname = 'public' and tablename not in ('migration', 'writer', 'node', 'lease')`;

/** Something of everything. */
async function fill(store: Store): Promise<void> {
  await exchange(store, 't1', 'roses and thorns', { deliveries: [delivery('turn:t1', 'red ones')] });
  await exchange(store, 't2', 'tulips', { room: TOPIC, personaId: 'gardener' });
  await overhear(store, ['nobody is meant']);
  await forget(store, { room: TOPIC, personaId: 'gardener' });
  const job = {
    ...{
      id: 'j1',
      chatId: CHAT,
      room: CHAT,
      personaId: 'default',
      prompt: 'water them',
      kind: 'cron' as const,
    },
    ...{
      value: '0 9 * * *',
      timezone: 'UTC',
      followUp: false,
      senderId: ANN.id,
      tainted: false,
      guarded: true,
    },
    ...{ turnId: 't1', nextAt: NOW + MINUTE, now: NOW },
  };
  const bounds = { open: 5, followUps: 5, followUpsADay: 5 };
  for (const id of ['j1', 'j2']) await store.addJob({ ...job, id }, bounds);
  const [due] = (await store.dueJobs({ channels: ['test'], now: NOW + MINUTE, most: 1 })).due;
  if (due === undefined) throw new Error('no job is due');
  const firing = { slot: NOW + MINUTE, attempt: 0, head: 'It is time.', now: NOW + MINUTE };
  expect(await store.fireJob({ ...firing, seen: due, becomes: { nextAt: NOW + DAY } })).toBe('fired');
  for (const id of ['task-1', 'task-2']) await added(store, id);
  await claimNext(store);
  await store.noteTask({ id: 'task-1', owner: 'me' }, { events: [{ kind: 'note', at: NOW } as never] });
  await store.finishTask(ending('task-1'), 'me');
  await store.tellTask('task-2', { mode: 'steer', text: 'the red ones' }, NOW);
  for (const [n, after] of ['# one', '# two'].entries()) {
    await store.keepVersion({
      ...{
        id: `v${n}`,
        chatId: CHAT,
        personaId: 'default',
        file: 'default/MEMORY.md',
        tier: 1,
        before: '',
        after,
      },
      ...{ at: NOW, cause: { kind: 'turn', personaId: 'default', turnId: 't1' } },
    });
  }
  await putSetting(store, 'a', 'b');
  await store.setValues({ stateOf: 'test' }, new Map([['key', 'secret']]));
  await receive(store, [message('last', 'waits'), command('c', 'usage')], { cursor: '7' });
}

/** What an earlier version had stored, and a row in each table that is still empty. */
function fillTheRest(file: string): void {
  const raw = new Sqlite(file);
  raw.prepare(`update message set text = ? where text = 'roses and thorns'`).run('roses\0 and \ud800 thorns');
  for (const { name } of tablesOf(raw)) {
    if (raw.prepare(`select 1 from ${name}`).get() !== undefined) continue;
    const columns = raw.pragma(`table_info(${name})`) as { name: string; type: string }[];
    const values = columns.map(({ type }) => (/int/i.test(type) ? 7 : '[]'));
    raw.prepare(`insert into ${name} values (${values.map(() => '?')})`).run(...values);
  }
  raw.close();
}

async function answers(store: Store) {
  const asked = { channels: ['test'], owner: 'looking', now: NOW };
  const tasks = await store.tasks(10);
  return {
    chat: await store.chat(CHAT),
    windows: [await windowTexts(store), await windowTexts(store, { room: TOPIC, personaId: 'gardener' })],
    trace: await store.trace({
      ...{ chatId: CHAT, most: 10 },
      wanted: { phrase: phraseOf('roses') as never, personaId: 'default' },
    }),
    jobs: await store.jobs({ chatId: CHAT }),
    runs: await store.runsOf('j1'),
    tasks,
    events: await Promise.all(tasks.map(({ id }) => store.taskEvents(id))),
    versions: await store.versions({ chatId: CHAT, personaId: 'default', most: 10 }),
    journal: await store.journal({ after: 0, most: 100 }),
    usage: await store.usage({ chatId: CHAT, personId: ANN.id, since: 0, now: NOW }),
    pending: await store.pending(asked),
    room: await store.readRoom(CHAT, 'looking', NOW),
    delivery: await store.nextDelivery(CHAT, 'looking', NOW),
    cursor: await cursorOf(store, 'bot'),
    setting: await settingOf(store, 'a'),
    counts: await store.counts(),
    rows: (await store.sizes()).rows,
  };
}

/** New rows of everything that has a number. */
async function goOn(store: Store): Promise<void> {
  const before = await store.journal({ after: 0, most: 1_000 });
  await receive(store, [message('one more', 'lilies')]);
  const turn = await begun(store, 't3', { now: NOW + DAY, owner: 'another' });
  const deliveries = [delivery('turn:t3', 'white ones')];
  expect(await finish(store, turn, 't3', { deliveries })).toBe('finished');
  await added(store, 'task-3');
  expect((await store.tasks(10)).map(({ id }) => id)).toEqual(['task-3', 'task-2', 'task-1']);
  const { commands } = await receive(store, [command('c2', 'usage')]);
  expect(await store.takeCommand(commands[0]?.id ?? 0, lease())).toMatchObject({ name: 'usage' });
  expect((await windowTexts(store)).slice(-2)).toEqual(['lilies', 'reply of t3']);
  const after = await store.journal({ after: before.at(-1)?.mark ?? 0, most: 1_000 });
  expect(after.length).toBeGreaterThan(0);
}

describeWithPostgres('a store that is moved', () => {
  let server: PostgresServer;
  let place: Place;
  let target: PostgresDatabase;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    place = await openMade();
    const url = await server.newDatabase();
    const given = { url, connections: 4, clock: systemClock, log: silentLog, sqliteMigrations: MIGRATIONS };
    target = await connectPostgres(given);
  });
  afterEach(async () => {
    await target.close();
    await place.remove();
  });

  it('has the same rows, answers the same, goes on without a collision, and comes back by a backup', async () => {
    const store = await place.open();
    await fill(store);
    await store.close();
    fillTheRest(place.file);
    await copyToServer(place.file, target);

    const raw = new Sqlite(place.file);
    const tables = tablesOf(raw);
    expect(tables.length).toBeGreaterThan(30);
    for (const table of tables) {
      const there = await sumThere(target, table);
      expect(there.rows, table.name).toBeGreaterThan(0);
      expect(there, table.name).toEqual(await sumOf(sqliteSide(raw), table));
    }
    // PostgreSQL takes no U+0000.
    const clean = (given: unknown) => JSON.parse(JSON.stringify(given).replaceAll('\\u0000', ''));
    const moved = storeOn(target);
    const everything = clean(await answers(await place.open()));
    expect(everything.windows[0]).toContain('roses and \ufffd\ufffd\ufffd thorns');
    expect(clean(await answers(moved))).toEqual(everything);

    const whole = join(place.folder, 'whole.db');
    const plain = join(place.folder, 'plain.db');
    await moved.copyTo(whole, { logins: true });
    await moved.copyTo(plain, { logins: false });
    expect((await stat(whole)).mode & 0o777).toBe(0o600);
    const back = await place.open({ file: whole });
    expect(clean(await answers(back))).toEqual(everything);
    expect(await back.values({ stateOf: 'test' }, ['key'])).toEqual(new Map([['key', 'secret']]));
    const withoutLogins = await place.open({ file: plain });
    expect(await withoutLogins.values({ stateOf: 'test' }, ['key'])).toEqual(new Map());
    const copied = new Sqlite(whole);
    for (const table of tables) {
      expect(await sumOf(sqliteSide(copied), table)).toEqual(await sumOf(sqliteSide(raw), table));
    }
    copied.close();
    raw.close();

    await goOn(moved);
    await goOn(back);
  });

  it('goes into an empty database only', async () => {
    await exchange(await place.open(), 't1', 'roses');
    await putSetting(storeOn(target), 'a', 'b');
    await expect(copyToServer(place.file, target)).rejects.toThrow(/already holds rows \(setting\)/);
    expect(await target.query('select id from message')).toEqual([]);
  });

  it('says what to do where an earlier restore was cut off behind its commit', async () => {
    await exchange(await place.open(), 't1', 'roses');
    await copyToServer(place.file, target);
    await expect(copyToServer(place.file, target)).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(
        /restore that was cut off, drop the database, create it anew, and repeat this$/,
      ),
    });
    expect(await target.query('select count(*) as n from turn')).toEqual([{ n: 1 }]);
  });

  it('is copied whole or not at all: of two keys that PostgreSQL cannot tell apart, none', async () => {
    await exchange(await place.open(), 't1', 'roses');
    const raw = new Sqlite(place.file);
    for (const key of ['rose', 'rose\0']) raw.prepare(`insert into setting values (?, 'red')`).run(key);
    raw.close();
    await expect(copyToServer(place.file, target)).rejects.toThrow(/duplicate key/);
    for (const { name } of await target.query<{ name: string }>(OURS)) {
      expect(await target.query(`select * from "${name}"`), name).toEqual([]);
    }
  });
});
