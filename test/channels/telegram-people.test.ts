/**
 * What people on Telegram do beside writing: they pass on, send albums, answer with a picture in mind, and use what the app
 * has. Over the wire, through the real channel, from the fake that sends it as the server does.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Attachment, InboundMessage } from '../../src/core/message.js';
import { ANNA, basicGroup, group, type Saying } from '../fakes/telegram-chats.js';
import { kinds, origins, paragraph } from '../fakes/telegram-kinds.js';
import { LUNA, type Stage, stage } from './telegram-stage.js';

const CLUB = group(-1001234567890, 'Book club');
const NEWS = { id: -1009876543210, type: 'channel', title: 'News' } as const;
const CARA = { id: 100003, first_name: 'Cara', last_name: 'Diaz' };
const PICTURE = { bytes: Buffer.from('a picture') };

let on: Stage;

beforeEach(async () => {
  on = await stage({ personaTokens: {} });
  await on.start();
});
afterEach(() => on.close());

async function heardOf(...sayings: Saying[]): Promise<InboundMessage[]> {
  for (const saying of sayings) on.fake.say(saying);
  return on.heard(sayings.length);
}

async function bytesOf(attachment: Attachment | undefined): Promise<string> {
  if (attachment === undefined) return 'no attachment';
  const result = await on.channel.fetch(attachment, {
    ...{ maxBytes: 1_000, signal: new AbortController().signal },
  });
  return result.kind === 'fetched' ? String(result.bytes) : result.kind;
}

describe('a forward says whose words it holds', () => {
  test.each<[string, object, string]>([
    ['a person', origins.user(CARA), 'Cara Diaz'],
    ['a person who hides their account', origins.hiddenUser('Somebody Shy'), 'Somebody Shy'],
    ['a group that spoke itself', origins.chat(CLUB), 'Book club'],
    ['a channel', origins.channel(NEWS, 8), 'News'],
  ])('%s', async (_name, origin, name) => {
    const [message] = await heardOf({ text: '/reset@coterie_bot', forwards: { origin: { ...origin } } });
    expect(message).toMatchObject({
      ...{ text: '/reset@coterie_bot', mentionsBot: false, forwardedFrom: name },
      sender: { name: 'Anna Berg' },
    });
  });

  test('of a message that was said here, with its picture; also when it is passed on a second time', async () => {
    const first = on.fake.say({ from: CARA, chat: CLUB, caption: '@coterie_bot look', photo: PICTURE });
    const again = on.fake.say({ forwards: first });
    on.fake.say({ chat: CLUB, forwards: { ...again, hides: true } });
    const [original, ...passedOn] = await on.heard(3);
    expect(original).toMatchObject({ mentionsBot: true });
    expect([original, original?.forwardedFrom]).toEqual([expect.anything(), undefined]);
    for (const message of passedOn) {
      expect(message).toMatchObject({
        ...{ text: '@coterie_bot look', mentionsBot: false, forwardedFrom: 'Cara Diaz' },
        sender: { name: 'Anna Berg' },
      });
      expect(await bytesOf(message.attachments?.[0])).toBe('a picture');
    }
  });
});

describe('an album', () => {
  test('is a message for each item, and they have their album in common', async () => {
    const items = ['one', 'two', 'three'].map((name) => ({ photo: { bytes: Buffer.from(name) } }));
    on.fake.album(items.map((item, n) => ({ ...item, ...(n === 0 ? { caption: 'our trip' } : {}) })));
    on.fake.album(items.slice(0, 2));
    const messages = await on.heard(5);
    expect(messages.map(({ text }) => text)).toEqual(['our trip', '', '', '', '']);
    const [first, , , second] = messages.map(({ album }) => album);
    expect(messages.map(({ album }) => album)).toEqual([first, first, first, second, second]);
    expect(first).toEqual(expect.any(String));
    expect(second).not.toBe(first);
    const bytes = messages.slice(0, 3).map(({ attachments }) => bytesOf(attachments?.[0]));
    expect(await Promise.all(bytes)).toEqual(['one', 'two', 'three']);
  });

  test('is one and the same to all of our bots that hear it in a basic group', async () => {
    await on.close();
    on = await stage();
    const basic = basicGroup(-77);
    on.fake.join(on.luna, basic.id);
    await on.start();
    on.fake.album([
      { chat: basic, photo: PICTURE },
      { chat: basic, photo: PICTURE },
    ]);
    const messages = await on.heard(4);
    expect([...new Set(messages.map(({ album }) => album))]).toEqual([expect.any(String)]);
    expect(new Set(messages.map(({ platformMessageId }) => platformMessageId)).size).toBe(4);
  });
});

describe('an answer brings the files of what it answers', () => {
  test.each<[string, Saying, Partial<Attachment>]>([
    ['a picture', { photo: PICTURE }, { kind: 'image' }],
    ['a voice note', { voice: { ...PICTURE, seconds: 3 } }, { kind: 'voice', seconds: 3 }],
    ['a document', { document: { ...PICTURE, name: 'plan.pdf' } }, { kind: 'document', name: 'plan.pdf' }],
  ])('%s', async (_name, saying, attachment) => {
    const { messageId } = on.fake.say({ from: CARA, chat: CLUB, ...saying });
    on.fake.say({ chat: CLUB, replyTo: messageId, text: '@coterie_bot what is this?' });
    const [, answer] = await on.heard(2);
    expect(answer?.attachments).toMatchObject([{ ...attachment, ofReply: true }]);
    expect(await bytesOf(answer?.attachments?.[0])).toBe('a picture');
  });

  test('behind its own, and told apart from them', async () => {
    const { messageId } = on.fake.say({ from: CARA, chat: CLUB, document: PICTURE });
    on.fake.say({ chat: CLUB, replyTo: messageId, photo: PICTURE, caption: 'like this' });
    const [, answer] = await on.heard(2);
    expect(answer?.attachments?.map(({ kind, ofReply = false }) => [kind, ofReply])).toEqual([
      ['image', false],
      ['document', true],
    ]);
  });

  test('to whichever of our bots hears it: each can fetch them', async () => {
    await on.close();
    on = await stage();
    on.fake.join(on.luna, CLUB.id);
    await on.start();
    const { messageId } = on.fake.say({ from: CARA, chat: CLUB, photo: PICTURE });
    on.fake.say({ chat: CLUB, replyTo: messageId, text: 'and this?' });
    const answers = (await on.heard(4)).filter(({ text }) => text === 'and this?');
    const sources = answers.map(({ attachments }) => attachments?.[0]?.source ?? '');
    expect(sources.filter((source) => source.startsWith(`${LUNA.id}:`))).toHaveLength(1);
    const bytes = answers.map(({ attachments }) => bytesOf(attachments?.[0]));
    expect(await Promise.all(bytes)).toEqual(['a picture', 'a picture']);
  });
});

test('an answer to a message of another chat brings what it quotes, and from whom', async () => {
  const origin = origins.channel(NEWS, 8);
  const [answer] = await heardOf({
    ...{ text: 'is that so?', quote: 'the lake is frozen' },
    repliesInto: { origin, chat: NEWS, messageId: 8 },
  });
  expect(answer).toMatchObject({
    replyTo: { senderName: 'News', text: 'the lake is frozen', ours: false },
  });
});

test.each<[string, object, string]>([
  [
    'a formatted message',
    kinds.richMessage(paragraph(['see ', { type: 'bold', text: 'this' }])),
    'see **this**',
  ],
  ['a poll', kinds.poll('Tea?', ['Green', 'Black']), '[poll Tea?: Green; Black]'],
  [
    'a checklist',
    kinds.checklist('Shopping', ['milk', 'eggs'], 1),
    '[checklist Shopping]\n- [x] milk\n- [ ] eggs',
  ],
  ['a location', kinds.location(52.52, 13.405), '[location 52.52, 13.405]'],
  ['a gift', kinds.gift('🧸', 'for you'), '[gift 🧸, for you]'],
  ['a sticker', kinds.sticker('😀'), '[sticker 😀]'],
  ['what no Bot API has yet', kinds.future(), '[a message of a kind I do not know: hologram]'],
])('in a direct chat nobody is met with silence: %s', async (_name, extra, text) => {
  expect(await heardOf({ extra: { ...extra } })).toMatchObject([{ text, sender: { name: 'Anna Berg' } }]);
});

test('a formatted message may be edited, too', async () => {
  const said = on.fake.say({ extra: kinds.richMessage(paragraph('at nine')) });
  const { rich_message: _old, ...message } = said.message;
  const edit_date = Math.floor(Date.now() / 1000);
  on.fake.push({ edited_message: { ...message, ...kinds.richMessage(paragraph('at ten')), edit_date } });
  on.fake.say({ text: 'done' });
  await on.heard(2);
  const events = on.batches.flatMap((batch) => batch.events);
  expect(events).toContainEqual(expect.objectContaining({ kind: 'edit', text: 'at ten' }));
});

test('topics in a direct chat are threads of it', async () => {
  const [message] = await heardOf({ text: 'about the trip', topic: 7 });
  expect(message).toMatchObject({ chat: { kind: 'direct', address: String(ANNA.id) }, threadId: '7' });
});
