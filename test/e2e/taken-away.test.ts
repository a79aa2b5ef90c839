/**
 * Somebody removes or replaces the database under a real gateway while people write: the gateway acknowledges nothing
 * more and ends, and Telegram gives the next process every message written from then on.
 */
import { cp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, expect, it } from 'vitest';
import { eventually, type Running } from '../harness/gateway.js';
import { pause } from '../harness/random.js';
import { type Stage, stage } from '../harness/telegram.js';

let on: Stage;
afterEach(() => on.close());

const person = (n: number) => ({ id: 200_000 + n, first_name: `Person ${n}` });

/** People write until the process has ended. `written` grows meanwhile. */
async function writing(gateway: Running, written: string[]): Promise<void> {
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
  'takes in whatever is written after somebody %s it',
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
    const written: string[] = [];
    const writes = writing(gateway, written);
    await eventually(() => on.telegram.sent.length > 20, 'a conversation goes on');
    await happen(file);
    const from = written.length;
    expect(await gateway.exited).toBe(1);
    await writes;
    expect(gateway.err()).toMatch(/coterie\.db was (removed|replaced) while it was open/);

    const next = await on.start();
    await eventually(() => on.telegram.pending() === 0, 'what waited is taken in');
    expect(await next.stop()).toBe(0);
    const kept = new Set(textsIn(file));
    expect(written.slice(from).filter((text) => !kept.has(text))).toEqual([]);
    expect(written.length).toBeGreaterThan(from);
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
