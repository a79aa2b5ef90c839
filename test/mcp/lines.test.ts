/** Lines of a server as they come in, in any pieces and in floods. */
import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { linesOf } from '../../src/mcp/stdio.js';
import { manualClock } from '../fakes/clock.js';

function* pieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const source = (text: string, size: number) =>
  Readable.from(pieces(Buffer.from(text), size), { objectMode: false });

it.each([1, 2, 3, 1_000])('are whole, however they are cut (%i bytes at a time)', async (size) => {
  const text = 'erste Zeile\nzwölf Boxkämpfer 😀\n\nohne Ende';
  const lines: string[] = [];
  for await (const line of linesOf(source(text, size), manualClock())) lines.push(line);
  expect(lines).toEqual(text.split('\n'));
});

it('of a flood wait, and each of them comes', async () => {
  const clock = manualClock();
  let taken = 0;
  const reading = (async () => {
    for await (const _ of linesOf(source('x\n'.repeat(1_000), 4_096), clock)) taken += 1;
  })();
  await clock.asleep(100);
  expect(taken).toBe(200);
  for (let n = 0; n < 5; n += 1) await clock.advance(100);
  await reading;
  expect(taken).toBe(1_000);
});
