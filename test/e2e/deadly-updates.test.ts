/** An update that ends the process whenever it is read: it is given again after every start, and not read for ever. */
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { eventually } from '../harness/gateway.js';
import { pause } from '../harness/random.js';
import { type Stage, stage } from '../harness/telegram.js';

const ANNA = 41;
const BERT = 42;
const ENDS_WHEN_READ = {
  NODE_OPTIONS: `--import ${fileURLToPath(new URL('../harness/deadly-words.mjs', import.meta.url))}`,
};
/** The first, which nobody counted, and five attempts. */
const ENDS = 1 + 5;

let on: Stage;
afterEach(() => on.close());

function say(id: number, text: string): void {
  on.telegram.say({ chat: { id, type: 'private' }, from: { id, first_name: `P${id}` }, text });
}

it('is skipped after six ends; who was being answered is, and who wrote behind it', async () => {
  on = await stage();
  on.model.reply(async ({ messages }) => {
    // Bert's answer takes longer than a process lives that reads it at once.
    if (JSON.stringify(messages).includes('hello')) await pause(400);
    return 'fine';
  });
  let running = await on.start(ENDS_WHEN_READ);
  say(BERT, 'hello');
  await eventually(() => on.model.requests.length === 1, 'Bert is being answered');
  say(ANNA, 'deadly words');
  say(ANNA, 'after');
  let ends = 0;
  await eventually(
    async () => {
      if (on.sentTo(ANNA).length > 0) return true;
      const isOver = await Promise.race([
        running.exited.then(() => true),
        new Promise<false>((resolve) => setImmediate(() => resolve(false))),
      ]);
      if (!isOver) return false;
      ends += 1;
      if (ends > ENDS) throw new Error(`it ended the process ${ends} times`);
      running = on.launch(ENDS_WHEN_READ);
      return false;
    },
    'who wrote behind it is answered',
    60_000,
  );
  expect(ends).toBe(ENDS);
  expect(on.sentTo(ANNA)).toEqual(['fine']);
  expect(on.sentTo(BERT)).toEqual(['fine']);
  expect(running.err()).toContain('skipped an update');
  await running.saw('coterie is up');
  const metrics = await (await fetch(`${await running.url()}/metrics`)).text();
  expect(metrics).toContain('coterie_passed_over_total{channel="telegram"} 1');
  await eventually(() => on.telegram.pending() === 0, 'Telegram hears that all was taken');
}, 90_000);
