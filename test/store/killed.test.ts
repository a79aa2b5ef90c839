/** A process that is killed while it receives leaves whole batches, and every batch it had acknowledged. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { cursorOf, waitingTexts } from '../contract/store/words.js';
import { MIGRATIONS, openHere, type Place } from './place.js';

const RECEIVER = fileURLToPath(new URL('./receiver.mjs', import.meta.url));
const KILLS = 6;

let place: Place;
beforeEach(async () => {
  place = await openHere();
});
afterEach(() => place.remove());

/** Lets a process receive batches from `first` on, kills it after some, and returns the last it acknowledged. */
async function receiveUntilKilled(first: number, acknowledged: number): Promise<number> {
  const child = spawn(process.execPath, [RECEIVER, place.file, MIGRATIONS, `${first}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  let last = first - 1;
  for await (const line of createInterface({ input: child.stdout })) {
    last = Number(line);
    if (last >= first + acknowledged) child.kill('SIGKILL');
  }
  const [, signal] = await ended;
  expect(signal).toBe('SIGKILL');
  return last;
}

it('kill -9 in the middle of receiving', async () => {
  let first = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const acknowledged = await receiveUntilKilled(first, 5 + kill * 7);
    const store = await place.open();
    const stored = Number(await cursorOf(store, 'bot'));
    expect(stored).toBeGreaterThanOrEqual(acknowledged);
    expect((await store.counts()).waiting).toBe((stored + 1 - first) * 4);
    const texts = await waitingTexts(store, 'test_1');
    const whole = Array.from({ length: stored + 1 - first }, (_, n) =>
      [0, 1, 2, 3].map((part) => `${first + n}.${part}`),
    );
    expect(texts).toEqual(whole.flat().slice(0, 500));
    await store.quieten();
    await store.close();
    first = stored + 1;
  }
});
