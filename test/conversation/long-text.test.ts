/** A reply of megabytes: what is sent of it, and how much work it is. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { compose as discord } from '../../src/channels/discord/outbound.js';
import { compose as telegram } from '../../src/channels/telegram/outbound.js';
import { compose as whatsapp } from '../../src/channels/whatsapp/outbound.js';
import { partsOf } from '../../src/conversation/deliver/reply.js';
import type { ModelClient } from '../../src/core/model.js';
import { workbench } from '../harness/conversation.js';

const BYTES = 2_000_000;
const LONGER = 'This is only the beginning: it is longer than I may send at once. Ask for the part you want.';

/** Of two million characters each. */
const SHAPES: [string, string][] = [
  ['words', 'word '.repeat(BYTES / 5)],
  ['one word', 'x'.repeat(BYTES)],
  ['lines', 'line\n'.repeat(BYTES / 5)],
  ['stars', '*'.repeat(BYTES)],
  ['stars around letters', '*a'.repeat(BYTES / 2)],
  ['brackets', '['.repeat(BYTES)],
  ['quotes', '>'.repeat(BYTES)],
  ['an open fence', `\`\`\`\n${'code\n'.repeat(BYTES / 5)}`],
  ['a table', `|a|b|\n|-|-|\n${'|c|d|\n'.repeat(BYTES / 6)}`],
  ['bold words', '**a** '.repeat(BYTES / 6)],
  ['half pairs', '\u{1f600}'.repeat(BYTES / 2)],
];

describe('a text that is too long for messages', () => {
  it.each([
    ['telegram', telegram],
    ['discord', discord],
    ['whatsapp', whatsapp],
  ])(
    'is sent as a few that people can read, and the last says that there is more: %s',
    (_name, compose) => {
      for (const [shape, text] of SHAPES) {
        let composed = 0;
        const counting = (markdown: string, spare?: number) => {
          composed += markdown.length;
          return compose(markdown, spare);
        };
        const parts = partsOf({ compose: counting }, text, 40);
        expect(parts.length, shape).toBeLessThanOrEqual(31);
        expect(parts.at(-1)?.text, shape).toContain(LONGER);
        expect(composed, shape).toBeLessThan(70_000);
      }
    },
    60_000,
  );

  it('is whole up to the limit, and cut at the end of a paragraph above it', () => {
    const compose = (text: string) => [{ text, marks: [] }];
    const paragraphs = (count: number) => 'twenty characters!!\n\n'.repeat(count).trimEnd();
    expect(partsOf({ compose }, paragraphs(3_000), 0)).toEqual([{ text: paragraphs(3_000), marks: [] }]);
    const [beginning, note] = partsOf({ compose }, paragraphs(4_000), 0);
    expect(beginning?.text).toMatch(/characters!!$/);
    expect(beginning?.text.length).toBeGreaterThan(60_000);
    expect(note?.text).toContain(LONGER);
  });
});

/** Says a text in pieces, and then short ones. */
function talking(text: string, piece: number): ModelClient {
  let asked = 0;
  return {
    async *stream() {
      const said = asked++ === 0 ? text : 'short';
      for (let at = 0; at < said.length; at += piece)
        yield { kind: 'text', delta: said.slice(at, at + piece) };
      yield { kind: 'done', text: said, calls: [], usage: null, model: 'm', truncated: false };
    },
    contextTokens: () => 32_000,
    check: async () => ({ identity: 'talking', warnings: [] }),
  };
}

it('a reply of 2 MB is cut, is sent and kept as it was cut, and the next message is answered', async () => {
  const on = await workbench({ model: talking('a few words, '.repeat(BYTES / 13), 10_000) });
  onTestFinished(() => on.close());
  await on.say('tell me everything');
  await on.settled();
  const [sent = ''] = on.texts();
  expect(sent.length).toBeLessThan(61_000);
  expect(sent).toMatch(/\(This is cut off: it grew longer than I may write at once. Ask me to go on.\)$/);
  const { messages } = await on.store.window({
    ...{ room: 'test_1', personaId: 'default', limit: 10, overheard: 0, except: [] },
  });
  expect(messages.at(-1)?.text).toBe(sent);
  await on.say('and now?');
  await on.settled();
  expect(on.texts()).toEqual([sent, 'short']);
});
