/** The real gateway on a real PostgreSQL: how it starts there, what it says of a database that will not do, and how it waits. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually, type Home, run as launch, makeHome, type Running } from '../harness/gateway.js';
import {
  databaseOf,
  describeWithPostgres,
  type PostgresServer,
  type Stop,
  startPostgres,
} from '../harness/postgres.js';
import { stage } from '../harness/telegram.js';

/** Too short for the redactor: where it is not said, nobody says it. */
const PASSWORD = 'q#9';

let home: Home;
const started: Running[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((gateway) => gateway.stop('SIGKILL')));
  await home.remove();
});

function run(...args: string[]): Running {
  const gateway = launch(home, args);
  started.push(gateway);
  return gateway;
}

async function ended(gateway: Running): Promise<{ code: number | null; said: string }> {
  const code = await gateway.exited;
  return { code, said: `${gateway.out()}${gateway.err()}` };
}

function chat(...lines: string[]): Running {
  const talking = run('chat');
  talking.write(lines.map((line) => `${line}\n`).join(''));
  talking.endInput();
  return talking;
}

/** All text that a gateway has left in its folder. */
async function leftBehind(folder: string): Promise<string> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = names.filter((each) => each.isFile() && each.name !== 'config.yaml');
  return (
    await Promise.all(files.map((each) => readFile(join(each.parentPath, each.name), 'latin1')))
  ).join();
}

describe('a store that is no address of PostgreSQL', () => {
  it.each([
    'file:///srv/hush.db',
    'data/hush.db',
    'mysql://me:hush@db.lan/x',
    'postgres://me:1/hush@db.lan/x',
  ])('ends the start with exit code 2 and a word: %s', async (url) => {
    home = await makeHome({ store: { url } });
    const { code, said } = await ended(run('start'));
    expect(code).toBe(2);
    expect(said).toMatch(/config\.yaml, line \d: store\.url: expected an address like postgres:\/\//);
    expect(said).not.toContain('hush');
  });
});

describeWithPostgres('a gateway on PostgreSQL', () => {
  let server: PostgresServer;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres({ tcp: true });
    await server.query(`create role gateway login password '${PASSWORD}'`);
  });
  afterAll(() => server.close());

  async function configure(store: object, more: object = {}): Promise<void> {
    home = await makeHome({ store, board: { port: 0 }, ...more });
  }
  async function own(): Promise<string> {
    url = await server.emptyDatabase();
    await server.query(`alter database ${databaseOf(url)} owner to gateway`);
    return server.overTcp(url, 'gateway', PASSWORD);
  }

  it('answers in the terminal, goes on where it ended, and keeps its other files in data_dir', async () => {
    await configure({ url: await server.emptyDatabase() });
    const first = chat('hello', '/persona new Luna');
    expect(await ended(first)).toMatchObject({
      code: 0,
      said: expect.stringMatching(/^default: .*offline/m),
    });
    const second = chat('/persona');
    expect(await ended(second)).toMatchObject({ code: 0, said: expect.stringContaining('Luna (active)') });
    expect(existsSync(join(home.folder, 'data/coterie.db'))).toBe(false);
    expect(existsSync(join(home.folder, 'data/audit.jsonl'))).toBe(true);
  });

  it('lets a chat and commands run beside it, and no second gateway', async () => {
    url = await server.emptyDatabase();
    await configure({ url });
    const gateway = run('start');
    await gateway.saw('coterie is up');
    expect((await ended(run('start'))).code).toBe(2);
    expect(await ended(chat('hello'))).toMatchObject({ code: 0, said: expect.stringMatching(/^default: /m) });
    expect((await ended(run('pair', 'approve', 'telegram_77', '--owner'))).code).toBe(0);
    expect((await ended(run('pair', 'list'))).code).toBe(0);
    const exported = await ended(run('export', 'terminal_local'));
    expect(exported).toMatchObject({ code: 0, said: expect.stringContaining('hello') });
    const [turn] = await server.query<{ id: string }>('select id from turn', url);
    expect(await ended(run('replay', turn?.id ?? ''))).toMatchObject({ code: 0 });
    expect(await gateway.stop()).toBe(0);
  });

  it('works beside a newer version that only added something, makes no backup then, and is refused by others', async () => {
    url = await server.emptyDatabase();
    await configure({ url });
    expect(await ended(chat('hello'))).toMatchObject({ code: 0 });
    const adds = `insert into migration (tag, applied_at, beside) select '0998_adds', 0, max(tag) from migration`;
    await server.query(`alter table chat add more bigint; ${adds}`, url);
    const gateway = run('start');
    await gateway.saw('coterie is up');
    expect(await ended(chat('again'))).toMatchObject({ code: 0, said: expect.stringMatching(/^default: /m) });
    expect((await ended(run('doctor'))).said).toMatch(/database: a newer coterie migrated it/);
    const { code, said } = await ended(run('backup', 'saved.tgz'));
    expect(said).toMatch(/newer coterie.*Make the backup with that/);
    expect(code).toBe(2);
    expect(existsSync(join(home.folder, 'saved.tgz'))).toBe(false);
    expect(await gateway.stop()).toBe(0);
    await server.query(`insert into migration (tag, applied_at) values ('0999_takes', 0)`, url);
    const refused = await ended(run('start'));
    expect(refused.said).toMatch(/newer coterie.*0999_takes/);
    expect(refused.code).toBe(2);
  });

  it('never tells the password: in no output, log, file or check', async () => {
    await configure({ url: await own(), wait_seconds: 1 }, { log: { level: 'debug', format: 'json' } });
    const gateway = run('start');
    await gateway.saw('coterie is up');
    const whole = await ended(run('doctor'));
    expect(whole.said).toMatch(
      new RegExp(
        `^ok +database: PostgreSQL 1\\d\\.\\S+, postgres://127.0.0.1:\\d+/${databaseOf(url)}, a gateway`,
        'm',
      ),
    );
    expect(whole.said).toMatch(
      /^ok +database: its clock differs by \d+ ms, and it has \d+ connections left$/m,
    );
    expect(whole.said).not.toMatch(/^failed/m);
    const told = [whole];
    for (const args of [['doctor', '--security'], ['audit', '--json'], ['--help'], ['backup', 'saved.tgz']]) {
      told.push(await ended(run(...args)));
    }
    await server.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      url,
    );
    expect(await ended(chat('hello'))).toMatchObject({ code: 0 });
    expect(await gateway.stop()).toBe(0);
    await server.query(`alter role gateway nologin`);
    told.push(await ended(run('start')), await ended(run('doctor')));
    await server.query(`alter role gateway login`);
    const audited = (await home.read('data/audit.jsonl')) ?? '';
    expect(audited).toMatch(/"store\.url":".*gateway:\[redacted\]@127\.0\.0\.1/);
    for (const text of [gateway.err(), await leftBehind(home.folder), ...told.map(({ said }) => said)]) {
      for (const form of [PASSWORD, encodeURIComponent(PASSWORD)]) expect(text).not.toContain(form);
    }
  });

  const wrong: [string, () => Promise<string>, RegExp][] = [
    ['a wrong password', async () => server.overTcp(await own(), 'gateway', 'hush'), /the password is wrong/],
    [
      'a role that is not there',
      async () => server.overTcp(await own(), 'nobody', 'hush'),
      /password|may not connect/,
    ],
    [
      'a database that is not there',
      async () => (await own()).replace(/\/\w+$/, '/nothing'),
      /no such database/,
    ],
    ['another collation', () => server.emptyDatabase('en'), /compared by bytes.*lc_collate 'C'/],
    [
      'a database that may only be read',
      async () => {
        const address = await own();
        await server.query(`alter database ${databaseOf(url)} set default_transaction_read_only = on`);
        return address;
      },
      /read-only/,
    ],
  ];
  it.each(wrong)('ends with exit code 2 where there is %s, and names store.url', async (_, address, why) => {
    await configure({ url: await address() });
    const { code, said } = await ended(run('start'));
    expect(said).toMatch(why);
    expect(said).toContain('store.url');
    expect(said).not.toMatch(/hush|q#9|q%239/);
    expect(code).toBe(2);
    const checked = await ended(run('doctor'));
    expect(checked.said).toMatch(/^failed +database: store\.url/m);
    expect(checked.code).toBe(1);
  });

  it('waits for a database that is away, and ends with exit code 1', async () => {
    await configure({ url: await server.emptyDatabase(), wait_seconds: 2 });
    await server.stop('fast');
    try {
      const before = Date.now();
      const { code, said } = await ended(run('start'));
      expect(code).toBe(1);
      expect(Date.now() - before).toBeGreaterThan(2_000);
      expect(said.match(/"event":"store unavailable"/g)).toHaveLength(1);
      expect(said).toMatch(/^coterie: postgres:\/\/\S+: PostgreSQL does not answer/m);
      expect(said).not.toContain('the store is lost');
    } finally {
      await server.start();
    }
  });

  it('starts when the database comes in time, and ends at once where it is stopped meanwhile', async () => {
    await configure({ url: await server.emptyDatabase(), wait_seconds: 60 });
    await server.stop('fast');
    const stopped = run('start');
    let waiting = stopped;
    try {
      await stopped.saw('store unavailable');
      const before = Date.now();
      expect(await stopped.stop()).toBe(0);
      expect(Date.now() - before).toBeLessThan(5_000);
      waiting = run('start');
      await waiting.saw('store unavailable');
    } finally {
      await server.start();
    }
    await waiting.saw('store back');
    await waiting.saw('coterie is up');
    expect(await waiting.stop()).toBe(0);
  });

  const ways: Stop[] = ['fast', 'immediate', 'kill'];
  it.each(ways)('answers once where it was restarted while a turn ran: %s', async (how) => {
    const on = await stage({ config: { store: { url: await server.emptyDatabase(), wait_seconds: 30 } } });
    home = on.home;
    try {
      const gateway = await on.start();
      on.model.reply(async () => {
        await server.stop(how);
        void server.start();
        return 'answered';
      });
      on.telegram.say({ text: 'hello' });
      await eventually(() => on.telegram.sent.length > 0, 'it answers');
      await gateway.saw('store back');
      on.model.reply('again');
      on.telegram.say({ text: 'still there?' });
      await eventually(() => on.telegram.sent.length > 1, 'it answers again');
      expect(on.telegram.sent.map(({ text }) => text)).toEqual(['answered', 'again']);
      expect(await gateway.stop()).toBe(0);
    } finally {
      await on.close();
    }
  });

  it('ends with exit code 1 where it stays away, says one sentence in the terminal, and the next start answers', async () => {
    const on = await stage({ config: { store: { url: await server.emptyDatabase(), wait_seconds: 2 } } });
    home = on.home;
    try {
      const gateway = await on.start();
      const talking = run('chat');
      await talking.saw('coterie is up');
      on.model.reply(async () => {
        await server.stop('immediate');
        return 'too late';
      });
      on.telegram.say({ text: 'hello' });
      const ends = await Promise.all([ended(gateway), ended(talking)]).finally(server.start);
      for (const { code, said } of ends) {
        expect(code).toBe(1);
        expect(said).toMatch(/"msg":"the store is lost; exiting/);
      }
      expect(ends[1].said.match(/^Something went wrong on my side/gm)).toHaveLength(1);
      expect(on.telegram.sent).toEqual([]);
      on.model.reply('here I am');
      const next = await on.start();
      await eventually(() => on.telegram.sent.length > 0, 'it answers');
      expect(on.telegram.sent.map(({ text }) => text)).toEqual(['here I am']);
      expect(await next.stop()).toBe(0);
    } finally {
      await on.close();
    }
  });
});
