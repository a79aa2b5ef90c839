/**
 * Somebody removes or replaces the database under a real gateway while people write: every message is either in the file
 * that was saved, or was not acknowledged, so that Telegram gives it to the next process. None is lost.
 */
import { cp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, expect, it } from 'vitest';
import { eventually, type Running } from '../harness/gateway.js';
import { pause } from '../harness/random.js';
import { type Stage, stage } from '../harness/telegram.js';

let on: Stage;
afterEach(() => on.close());

const person = (n: number) => ({ id: 200_000 + n, first_name: `Person ${n}` });

/** People write until the process has ended; what they wrote. */
async function writing(gateway: Running): Promise<string[]> {
  const written: string[] = [];
  let over = false;
  void gateway.exited.then(() => {
    over = true;
  });
  while (!over) {
    const text = `word ${written.length}`;
    written.push(text);
    on.telegram.say({ from: person(written.length % 10), text });
    await pause(5);
  }
  return written;
}

function textsIn(file: string): string[] {
  const database = new Database(file, { readonly: true });
  const texts = database.prepare('select text from message').pluck().all() as string[];
  database.close();
  return texts;
}

const WAYS: [string, (file: string) => Promise<unknown>][] = [
  ['removes', (file) => Promise.all([file, `${file}-wal`, `${file}-shm`].map((each) => rm(each)))],
  ['replaces', (file) => rename(`${file}.old`, file)],
];

it.each(WAYS)(
  'loses no message where somebody %s it',
  async (_, happen) => {
    on = await stage({ config: { conversation: { debounce_ms: 50 } } });
    const data = join(on.home.folder, 'data');
    const file = join(data, 'coterie.db');
    const before = await on.start();
    on.telegram.say({ text: 'hi' });
    await eventually(() => on.telegram.sent.length > 0, 'it answers');
    await before.stop();
    await cp(file, `${file}.old`);

    const gateway = await on.start();
    const writes = writing(gateway);
    await eventually(() => on.telegram.sent.length > 20, 'a conversation goes on');
    await happen(file);
    expect(await gateway.exited).toBe(1);
    const written = await writes;
    const copies = (await readdir(data)).filter((name) => name.includes('.rescued-'));
    expect(copies, gateway.err().slice(-3_000)).toHaveLength(1);
    expect(gateway.err()).toContain(copies[0]);

    const next = await on.start();
    await eventually(() => on.telegram.pending() === 0, 'what waited is taken in');
    expect(await next.stop()).toBe(0);
    const kept = new Set([...textsIn(join(data, copies[0] ?? '')), ...textsIn(file)]);
    expect(written.filter((text) => !kept.has(text))).toEqual([]);
    expect(written.length).toBeGreaterThan(20);
  },
  120_000,
);

it('starts no second gateway where the lock was removed', async () => {
  on = await stage();
  const gateway = await on.start();
  await rm(join(on.home.folder, 'data/gateway.lock'));
  await gateway.saw('taken again');
  expect(await on.launch().exited).toBe(2);
  expect(await gateway.stop()).toBe(0);
});
