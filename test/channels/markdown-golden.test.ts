/** What comes of the Markdown in `test/fixtures/markdown/` on every platform; `npx vitest -u` writes it anew. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cut } from '../../src/channels/markdown/cut.js';
import { discordLength, discordText, TABLE_WIDTH } from '../../src/channels/markdown/discord.js';
import { parse } from '../../src/channels/markdown/parse.js';
import { TABLE_WIDTH as WHATSAPP_TABLE, whatsappText } from '../../src/channels/markdown/whatsapp.js';
import { compose, sendRequest } from '../../src/channels/telegram/outbound.js';
import type { Part } from '../../src/core/channel.js';

const FIXTURES = join(import.meta.dirname, '../fixtures/markdown');
const ANNA = { address: '100001', threadId: null, kind: 'direct' as const };

const PLATFORMS: Record<string, (source: string) => string> = {
  'discord.txt': (source) => discordText(parse(source, { tableWidth: TABLE_WIDTH })),
  'whatsapp.txt': (source) => whatsappText(parse(source, { tableWidth: WHATSAPP_TABLE })),
  'telegram.json': (source) =>
    JSON.stringify(
      compose(source).map((part) => sendRequest(ANNA, part, true)),
      null,
      2,
    ),
};

describe.each([
  'tables',
  'nested-lists',
  'code-in-lists',
  'links',
  'quotes',
  'signs',
  'formulas',
  'wide-letters',
  'elements',
])('%s', (name) => {
  test.each(Object.entries(PLATFORMS))('as %s', async (ending, rendered) => {
    const source = readFileSync(join(FIXTURES, `${name}.md`), 'utf8');
    await expect(`${rendered(source)}\n`).toMatchFileSnapshot(join(FIXTURES, `${name}.${ending}`));
  });
});

describe('a block of code of 10,000 letters', () => {
  const code = Array.from({ length: 250 }, (_, line) => `  if (x${line}) { y = \`\${x}\`; // *${line}*`).join(
    '\n',
  );
  const source = `Here it is:\n\n\`\`\`js\n${code.slice(0, 10_000)}\n\`\`\`\n\nThat was it.`;
  const ways: [string, number, (part: Part) => number, (part: Part) => string, RegExp][] = [
    [
      'Discord',
      2000,
      discordLength,
      discordText,
      /^(?:Here it is:\n\n)?```js\n(?:.|\n)+\n```(?:\n\nThat was it\.)?$/,
    ],
    [
      'WhatsApp',
      4096,
      (part) => whatsappText(part).length,
      whatsappText,
      /^(?:Here it is:\n\n)?```(?:.|\n)+```(?:\n\nThat was it\.)?$/,
    ],
  ];
  test.each(ways)('is a block of code in each message on %s', (_name, limit, measure, rendered, shape) => {
    const parts = cut(parse(source), { limit, measure });
    expect(parts.length).toBe(Math.ceil(source.length / (limit - 60)));
    for (const part of parts) {
      const text = rendered(part);
      expect(text.length).toBeLessThanOrEqual(limit);
      expect(text).toMatch(shape);
      expect(text.split('```')).toHaveLength(3);
    }
    const lines = (text: string) => text.split('\n').filter((line) => line.trim() !== '');
    expect(parts.flatMap(({ text }) => lines(text))).toEqual(lines(parse(source).text));
  });
});
