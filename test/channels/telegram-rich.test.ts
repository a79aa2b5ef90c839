/** Replies with headings, tables and formulas as rich messages, where the operator wants them. */
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { compose } from '../../src/channels/telegram/outbound.js';
import { richMessage, withSource } from '../../src/channels/telegram/rich-reply.js';
import type { Part, Recipient } from '../../src/core/channel.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { richRefusalOf, richText } from '../fakes/telegram-limits.js';
import { sendOptions } from '../harness/sending.js';
import { type Stage, stage } from './telegram-stage.js';

const TO_ANNA: Recipient = { address: String(ANNA.id), threadId: null, kind: 'direct' };
const TABLE =
  '## Tea\n\n| kind | minutes |\n| :- | -: |\n| green | 2 |\n| <b>black</b> | $4$ |\n\n$$a_1 * b_2 * c$$';

let on: Stage;
beforeEach(async () => {
  on = await stage({ personaTokens: {}, richMessages: 'auto' });
});
afterEach(() => on.close());

const only = (markdown: string): Part => {
  const [part, ...others] = on.channel.compose(markdown);
  if (part === undefined || others.length > 0) throw new Error('not one part');
  return part;
};
const send = (part: Part, more = {}) => on.channel.send(TO_ANNA, part, sendOptions(more));

describe('a rich message', () => {
  test('has headings, tables and formulas as such, and what was written as text', async () => {
    expect(await send(only(TABLE), { replyTo: '7' })).toEqual({ kind: 'sent', platformMessageId: '1' });
    const [{ rich = '', replyTo } = { rich: '', replyTo: null }] = on.fake.sent;
    expect(replyTo).toBe(7);
    expect(rich).toContain('<h2>Tea</h2>');
    expect(rich).toContain('<th align="right">minutes</th>');
    expect(rich).toContain('<td align="left">&lt;b&gt;black&lt;/b&gt;</td>');
    expect(rich).toContain('<td align="right"><tg-math>4</tg-math></td>');
    expect(rich).toContain('<tg-math-block>a_1 * b_2 * c</tg-math-block>');
    expect(on.fake.callsOf('sendRichMessage')).toMatchObject([
      { rich_message: { skip_entity_detection: true } },
    ]);
  });

  test.each([
    ['plain words', 'It costs $4 or $5, **really**'],
    ['a link', '# Tea\n\n[here](https://evil.example/?q=secret)'],
    ['an address', '# Tea\n\nhttps://evil.example/?q=secret'],
    ['a picture', '# Tea\n\n![](https://evil.example/?q=secret)'],
    ['a table that is too wide', `${'|a'.repeat(21)}|\n${'|-'.repeat(21)}|\n${'|b'.repeat(21)}|`],
  ])('is none for %s', async (_name, markdown) => {
    expect(await send(only(markdown))).toMatchObject({ kind: 'sent' });
    expect(on.fake.callsOf('sendRichMessage')).toEqual([]);
    expect(on.fake.sent).toMatchObject([{ rich: null }]);
  });

  test('is none for a text that is not what its source says, and none where nobody wants them', async () => {
    const part = only(TABLE);
    await send({ ...part, text: `${part.text} …\n(stopped)` });
    expect(on.fake.sent).toMatchObject([{ rich: null, text: expect.stringContaining('(stopped)') }]);
    await on.close();
    on = await stage({ personaTokens: {} });
    expect(only(TABLE)).not.toHaveProperty('source');
  });

  test('keeps the name before it and the line after it', async () => {
    const { text, marks, source } = only(TABLE);
    const noted: Part = {
      text: `${text}\n\nsaved <1>`,
      marks,
      note: text.length + 2,
      ...(source && { source }),
    };
    const appearance = { personaId: 'luna', name: 'Luna <3', avatar: null };
    await send(noted, { speaker: 'luna', appearance, leads: true });
    expect(on.fake.sent[0]?.rich).toMatch(/^<p><b>Luna &lt;3<\/b><\/p><h2>.*<p>saved &lt;1&gt;<\/p>$/s);
  });

  test('takes the place of a text while it grows, and of another rich one', async () => {
    const sent = await send(only('Tea'));
    if (sent.kind !== 'sent') throw new Error('not sent');
    const edit = (markdown: string) =>
      on.channel.edit(TO_ANNA, sent.platformMessageId, only(markdown), sendOptions());
    for (const markdown of [TABLE, TABLE, `${TABLE}\n\nmore`]) expect(await edit(markdown)).toEqual(sent);
    expect(on.fake.sent).toMatchObject([{ rich: expect.stringContaining('more') }]);
    expect(on.fake.edits).toHaveLength(2);
  });

  test('is asked for once of a server that knows none', async () => {
    on.fake.settings.rich = false;
    for (let i = 0; i < 2; i++) expect(await send(only(TABLE))).toMatchObject({ kind: 'sent' });
    expect(on.fake.callsOf('sendRichMessage')).toHaveLength(1);
    expect(on.fake.sent.map(({ rich }) => rich)).toEqual([null, null]);
  });

  test('that is refused goes out as text; one of which nobody knows does not', async () => {
    on.fake.fail('sendRichMessage', {
      status: 400,
      description: 'Bad Request: RICH_VALIDATE_CTOR_NOT_ALLOWED',
    });
    expect(await send(only(TABLE))).toMatchObject({ kind: 'sent' });
    expect(on.fake.sent).toMatchObject([{ rich: null }]);
    on.fake.fail('sendRichMessage', { drop: 'after' });
    expect(await send(only(TABLE))).toMatchObject({ kind: 'unreachable', taken: 'unknown' });
    expect(on.fake.sent).toHaveLength(2);
  });
});

test('whatever Markdown it is, Telegram takes it, and no word is lost', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '# ',
      '\n\n',
      '\n',
      '| a | b |\n|--|:-:|\n| c | d |\n',
      '- ',
      '1. ',
      '> ',
      '`',
      '```\n',
      '$',
      '$$',
    ),
    fc.constantFrom('**', '_', '~~', '\\[', '\\]', '<td>', '</p>', '&amp;', '---\n', 'word ', 'x^2'),
    fc.string({ unit: 'binary', maxLength: 5 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const markdown = `# Title\n\n${pieces.join('')}`;
      const [part] = withSource(compose(markdown), markdown);
      const rich = part === undefined ? null : richMessage(part, 'Luna');
      if (rich === null || part === undefined) return;
      expect(richRefusalOf({ rich_message: { ...rich } })).toBeNull();
      const words = (text: string) => text.match(/[a-z]+/g)?.length ?? 0;
      expect(words(richText(rich.html))).toBeGreaterThanOrEqual(words(part.text));
    }),
  );
});
