/**
 * `coterie migrate-store`, `backup` and `restore` by the real program: a store goes to PostgreSQL whole, however often
 * the copy is killed, and comes back by a backup; what must not be copied is refused, and no password is shown.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { sqliteSide, sumOf, tablesOf } from '../../src/store/copy.js';
import { eventually, type Home, makeHome, run } from '../harness/gateway.js';
import { putNewDatabase } from '../harness/new-database.js';
import { databaseOf, describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';

const CONFIG = { log: { level: 'warn' }, store: { wait_seconds: 1 } };

let server: PostgresServer;
let home: Home;
let url: string;
/** The database file of `home`. */
let file: string;

/** Chats with so many messages, as one persona heard them. */
function fill(messages: number): void {
  const raw = new Sqlite(file);
  const said = raw.prepare(
    `insert into message (room_id, chat_id, account, moves, author_kind, author_id, author_name, administrator, text,
      sent_at, received_at, platform_message_id, mentions_bot, edited, state)
    values (@room, @room, 'bot', 0, 'person', 'test_ann', 'Ann', 0, @text, @n, @n, @n, 0, 0, 'done')`,
  );
  const heard = raw.prepare(`insert into heard values (@room, 'default', 1, @n - 1, @n)`);
  raw.transaction(() => {
    for (let n = 1; n <= messages; n++) {
      const row = { n, room: `test_${n % 20}`, text: `${'word '.repeat(20)}${n}` };
      said.run(row);
      heard.run(row);
    }
    raw.exec(`insert into channel_state values ('whatsapp', 'creds', 'secret')`);
  })();
  raw.close();
}

async function sumsIn(database: string): Promise<Record<string, unknown>> {
  const raw = new Sqlite(database, { readonly: true });
  try {
    const sums: Record<string, unknown> = {};
    for (const table of tablesOf(raw)) {
      const { rows, sum } = await sumOf(sqliteSide(raw), table);
      sums[table.name] = `${rows} ${sum}`;
    }
    return sums;
  } finally {
    raw.close();
  }
}

async function coterie(args: string[], at = home) {
  const running = run(at, args);
  const code = await running.exited;
  return { code, out: running.out(), err: running.err(), lines: running.out().trimEnd().split('\n') };
}

const migrate = (...args: string[]) => coterie(['migrate-store', '--to', url, ...args]);

async function messagesThere(): Promise<number> {
  const [found] = await server.query<{ n: string }>(`select to_regclass('public.message') as n`, url);
  if (found?.n == null) return 0;
  const [counted] = await server.query<{ n: string }>('select count(*) as n from message', url);
  return Number(counted?.n);
}

describeWithPostgres('a store', () => {
  beforeAll(async () => {
    server = await startPostgres({ tcp: true });
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    home = await makeHome(CONFIG);
    file = join(home.folder, 'data/coterie.db');
    await putNewDatabase(file);
    url = await server.emptyDatabase();
  });
  afterEach(() => home.remove());

  it('is moved whole, though every copy but the last is killed', { timeout: 120_000 }, async () => {
    const messages = 20_000;
    fill(messages);
    const before = createHash('sha256')
      .update(await readFile(file))
      .digest('hex');
    let inBetween = 0;
    for (const [n, share] of [0, 0.2, 0.5, 0.8].entries()) {
      const running = run(home, ['migrate-store', '--to', url, ...(n === 0 ? [] : ['--resume'])]);
      await eventually(async () => (await messagesThere()) > share * messages, `it copied ${share} of all`);
      await running.stop('SIGKILL');
      if ((await messagesThere()) < messages) inBetween++;
    }
    expect(inBetween).toBeGreaterThan(0);

    const refused = await migrate();
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toMatch(/^coterie: postgres:\S+ already holds rows \(\w+\)/);

    const { code, lines, err } = await migrate('--resume');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(lines).toContain(`message ${messages} ${messages} ok`);
    expect(lines.slice(0, -1).filter((line) => !/^\w+ (\d+) \1 ok$/.test(line))).toEqual([]);
    expect(lines.at(-1)).toBe(`${lines.length - 1} tables, ${2 * messages + 1} rows, equal`);
    // Once more changes nothing.
    expect(await migrate('--resume')).toMatchObject({ code: 0, lines });
    expect(
      createHash('sha256')
        .update(await readFile(file))
        .digest('hex'),
    ).toBe(before);
    const [next] = await server.query<{ id: string }>(
      `select nextval(pg_get_serial_sequence('message', 'id')) as id`,
      url,
    );
    expect(Number(next?.id)).toBe(messages + 1);
  });

  it('comes back by a backup, and an old backup goes to PostgreSQL', { timeout: 60_000 }, async () => {
    fill(2_500);
    const old = await sumsIn(file);
    expect((await coterie(['backup', 'old.tgz', '--with-credentials'])).code).toBe(0);
    expect((await migrate()).code).toBe(0);
    await home.configure({ ...CONFIG, store: { url } });
    expect(await coterie(['backup', 'new.tgz', '--with-credentials'])).toMatchObject({ code: 0, err: '' });
    expect(await coterie(['backup', 'plain.tgz'])).toMatchObject({ code: 0, err: '' });

    const there = await makeHome(CONFIG);
    try {
      const restored = join(there.folder, 'data/coterie.db');
      expect(await coterie(['restore', join(home.folder, 'new.tgz')], there)).toMatchObject({
        code: 0,
        err: '',
      });
      expect(await sumsIn(restored)).toEqual(old);
      expect((await coterie(['restore', join(home.folder, 'plain.tgz')], there)).code).toBe(0);
      expect(await sumsIn(restored)).toEqual({ ...old, channel_state: '0 0' });

      const filled = await coterie(['restore', 'old.tgz']);
      expect(filled.code).toBe(1);
      expect(filled.err).toMatch(/already holds rows \(\w+\); it must be empty/);
      url = await server.emptyDatabase();
      await there.configure({ ...CONFIG, store: { url } });
      await there.write('groups/AGENTS.md', 'as it was');
      expect(await coterie(['restore', join(home.folder, 'old.tgz')], there)).toMatchObject({
        code: 0,
        err: '',
      });
      expect(existsSync(restored)).toBe(false);
      expect(await messagesThere()).toBe(2_500);
      expect((await coterie(['backup', 'again.tgz', '--with-credentials'], there)).code).toBe(0);
      await home.configure(CONFIG);
      expect((await coterie(['restore', join(there.folder, 'again.tgz')])).code).toBe(0);
      expect(await sumsIn(file)).toEqual(old);
    } finally {
      await there.remove();
    }
  });

  it('is refused where it cannot be moved, with exit code 2 where the order is wrong', {
    timeout: 60_000,
  }, async () => {
    fill(10);
    const name = databaseOf(url);
    const orders: [why: RegExp, code: number, args: string[]][] = [
      [/required option '--to <url>'/, 2, []],
      [/--to: expected an address like postgres:/, 2, ['--to', `file:${file}`]],
      [/--to: expected an address like postgres:/, 2, ['--to', 'data/coterie.db']],
      [/percent-encoded/, 2, ['--to', 'postgres://me:hush/hush@localhost/db']],
      [/the password is wrong/, 2, ['--to', server.overTcp(url, 'coterie', 'hush')]],
      [/there is no such database/, 2, ['--to', url.replace(name, 'nowhere')]],
      [/does not answer/, 1, ['--to', 'postgres://me:hush@127.0.0.1:1/db']],
      [/There is no database \S+nothing\.db/, 2, ['--to', url, '--from', 'nothing.db']],
      [/not an SQLite database/, 1, ['--to', url, '--from', 'config.yaml']],
    ];
    for (const [why, code, args] of orders) {
      const found = await coterie(['migrate-store', ...args]);
      expect(found, args.join(' ')).toMatchObject({ code, out: '' });
      expect(found.err).toMatch(why);
      expect(found.err).not.toContain('hush');
    }
    expect(await home.read('data/audit.jsonl')).toBeNull();

    const raw = new Sqlite(file);
    const [newest] = raw.prepare<[], string>('select tag from migration order by tag desc').pluck().all();
    raw.prepare('delete from migration where tag = ?').run(newest);
    expect(await migrate()).toMatchObject({
      code: 1,
      err: expect.stringContaining('start the gateway once'),
    });
    raw.prepare('insert into migration values (?, 0), (?, 0)').run(newest, '9999_later');
    expect(await migrate()).toMatchObject({ code: 2, err: expect.stringContaining('by a newer coterie') });
    raw.prepare('delete from migration where tag = ?').run('9999_later');
    raw.close();

    await home.configure({ ...CONFIG, log: { level: 'info' }, board: { port: 0 } });
    const gateway = run(home, ['start']);
    await gateway.saw('coterie is up');
    const runs = expect.stringMatching(
      /^coterie: A coterie runs on .*; stop it before you move its store\.\n$/,
    );
    expect(await migrate()).toMatchObject({ code: 2, out: '', err: runs });
    await gateway.stop();
    expect(await messagesThere()).toBe(0);
  });

  it('is told to be different from rows that somebody else had put there', async () => {
    fill(10);
    expect((await migrate()).code).toBe(0);
    await server.query(`update message set text = 'other words' where id = 3`, url);
    const changed = await migrate('--resume');
    expect(changed.code).toBe(1);
    expect(changed.lines).toContain('message 10 10 different');
    expect(changed.lines.at(-1)).toBe(`${changed.lines.length - 1} tables, 21 rows, different`);
    expect(changed.err).toContain('holds other rows than');
    expect(await home.read('data/audit.jsonl')).toMatch(
      /"kind":"backup".*a copy of .*coterie\.db to postgres:/,
    );
  });
});
