/** `/archive`, over real files: whoever asks again and again fills no disk. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { manualClock } from '../fakes/clock.js';
import { type Workbench, workbench } from '../harness/conversation.js';

let on: Workbench;
afterEach(() => on.close());

const copies = async () => (await readdir(join(on.folder, 'groups/test_1/archive'))).length;
async function say(text: string): Promise<string> {
  await on.say(text);
  await on.settled();
  return on.texts().at(-1) ?? '';
}

it('makes no second file where nothing was said, thirty times in a row', async () => {
  on = await workbench();
  await say('hello');
  expect(await say('/archive')).toMatch(/^Copied 2 messages to/);
  for (let n = 0; n < 30; n++) expect(await say('/archive')).toMatch(/^Nothing was said since the last copy/);
  expect(await copies()).toBe(1);
  await say('more');
  expect(await say('/archive')).toMatch(/^Copied 4 messages to/);
  // One that was removed is made again, and so is one of another conversation.
  await rm(join(on.folder, 'groups/test_1/archive'), { recursive: true });
  expect(await say('/archive')).toMatch(/^Copied 4 messages to/);
  await say('/reset');
  expect(await say('/archive')).toBe('There is no conversation here to archive yet.');
});

it('makes at most twenty within an hour, whatever is said between them', async () => {
  const clock = manualClock();
  on = await workbench({ clock });
  for (let n = 0; n < 21; n++) {
    await say(`hello ${n}`);
    expect(await say('/archive')).toMatch(n < 20 ? /^Copied/ : /too often within the last hour/);
    await clock.advance(1_000);
  }
  expect(await copies()).toBe(20);
  await clock.advance(3_600_000);
  expect(await say('/archive')).toMatch(/^Copied 42 messages/);
});
