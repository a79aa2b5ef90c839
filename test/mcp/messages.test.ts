/** Messages as they come in, of any size and in any pieces. */
import { expect, it } from 'vitest';
import { linesOf, type Received, standIn } from '../../src/mcp/messages.js';
import { MOST_MESSAGE_BYTES } from '../../src/mcp/settings.js';
import { manualClock } from '../fakes/clock.js';

async function* pieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function linesIn(text: string, size: number): Promise<Received[]> {
  const lines: Received[] = [];
  for await (const line of linesOf(pieces(Buffer.from(text), size), manualClock())) lines.push(line);
  return lines;
}

it.each([1, 2, 3, 1_000])('are whole lines, however they are cut (%i bytes at a time)', async (size) => {
  const text = 'erste Zeile\nzwölf Boxkämpfer 😀\n\nohne Ende';
  expect(await linesIn(text, size)).toEqual(text.split('\n').map((whole) => ({ whole })));
});

it.each([7_777, 65_536, 10_000_000])(
  'that are too large keep their two ends (%i bytes at a time)',
  async (size) => {
    const large = `begins${'x'.repeat(MOST_MESSAGE_BYTES)}ends`;
    const [first, second, ...more] = await linesIn(`${large}\nand another\n`, size);
    expect(more).toEqual([]);
    expect(second).toEqual({ whole: 'and another' });
    expect(first).toMatchObject({ bytes: large.length });
    const { head, tail } = first as { head: string; tail: string };
    expect([head.slice(0, 8), tail.slice(-8)]).toEqual(['beginsxx', 'xxxxends']);
    expect(head.length + tail.length).toBeLessThan(600_000);
  },
);

it('of a flood wait, and each of them comes', async () => {
  const clock = manualClock();
  let taken = 0;
  const reading = (async () => {
    for await (const _ of linesOf(pieces(Buffer.from('x\n'.repeat(1_000)), 4_096), clock)) taken += 1;
  })();
  await clock.asleep(100);
  expect(taken).toBe(200);
  await clock.advance(100);
  expect(taken).toBe(400);
  for (let n = 0; n < 4; n += 1) await clock.advance(100);
  await reading;
  expect(taken).toBe(1_000);
});

const standsIn = (head: string, tail: string) => {
  const made = standIn({ head, tail, bytes: 9_000_000 });
  return made === null
    ? null
    : (JSON.parse(made) as { id: number; result: { content: { text: string }[]; isError: boolean } });
};

it.each([
  [
    '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"one \\u00e4\\"two',
    '"}]}}',
    'one ä"two',
  ],
  ['{ "id": 7, "result": {"content": [{"text": "one", "type": "text"}, ', '"}]}}', 'one'],
  [
    '{"result":{"content":[{"type":"text","text":"half an escape \\u00e',
    'x"}]},"jsonrpc":"2.0","id":7}',
    'half an escape ',
  ],
  ['{"result":{"content":[{"type":"text","text":"half \\', 'x"}]},"id":7,"jsonrpc":"2.0"}\r', 'half '],
])('a stand-in has the id and the beginning of the text: %s', (head, tail, text) => {
  const made = standsIn(head, tail);
  expect(made).toMatchObject({ id: 7, result: { isError: false } });
  expect(made?.result.content[0]?.text).toBe(text);
  expect(made?.result.content[1]?.text).toContain('9.0 MB');
});

it('a stand-in without a text says so; without an id there is none', () => {
  const picture = '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"image","data":"AAAA';
  expect(standsIn(picture, '"}]}}')).toMatchObject({ id: 7, result: { isError: true } });
  for (const [head, tail] of [
    ['{"result":{"content":[{"type":"text","text":"x', '"}],"structuredContent":{"a":1,"id":8}}}'],
    ['{"result":{"content":[{"type":"text","text":"x', ',\\"id\\":8}"}]}}'],
    ['garbage', 'garbage'],
  ] as const) {
    expect(standsIn(head, tail)).toBeNull();
  }
});
