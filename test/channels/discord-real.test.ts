/** What becomes of events as Discord itself documents them; see `discord-payloads.ts`. */
import { describe, expect, test } from 'vitest';
import { Directory } from '../../src/channels/discord/directory.js';
import { inbound, type Known } from '../../src/channels/discord/inbound.js';
import * as real from './discord-payloads.js';

const { BOT, CHANNEL, FORUM, GUILD, MESSAGE, POST, PRIVATE } = real;

function known(more: Partial<Known> = {}): Known {
  const directory = new Directory();
  directory.note('GUILD_CREATE', {
    id: GUILD,
    name: 'Garden',
    channels: [{ id: CHANNEL, name: 'talk', type: 0 }],
  });
  directory.note('CHANNEL_CREATE', { id: FORUM, guild_id: GUILD, name: 'questions', type: 15 });
  directory.note('THREAD_CREATE', real.postBegun);
  directory.note('THREAD_LIST_SYNC', real.threadsInView);
  const me = { id: BOT, name: 'Coterie', applicationId: BOT };
  return { me, directory, isOurWebhook: () => false, bots: false, ...more };
}

const heard = (payload: object, more: Partial<Known> = {}) => inbound('MESSAGE_CREATE', payload, known(more));
const group = { address: CHANNEL, kind: 'group', within: GUILD, title: '#talk (Garden)' };

test.each<[string, object, object]>([
  [
    'a message in a channel',
    real.plain,
    { chat: group, threadId: null, text: 'Supa Hot', sender: { name: 'Annie' }, platformMessageId: MESSAGE },
  ],
  ['a direct message', real.direct, { chat: { kind: 'direct', title: 'Anna' }, text: 'Supa Hot' }],
  [
    'a reply without what it answers',
    real.replyAlone,
    { replyTo: { platformMessageId: '1429', senderName: '', text: '', ours: false } },
  ],
  [
    'a question about a picture that somebody sent',
    real.aboutAPicture,
    { mentionsBot: true, attachments: [{ kind: 'image', name: 'IMG_4021.jpg', ofReply: true }] },
  ],
  [
    'a forward with a command in it',
    real.forward,
    {
      forwardedFrom: '',
      text: '@Coterie /reset',
      mentionsBot: false,
      replyTo: null,
      attachments: [{ kind: 'image', bytes: 2_483_112 }],
    },
  ],
  ['a voice message', real.voice, { text: '', attachments: [{ kind: 'voice', seconds: 6 }] }],
  ['a poll', real.poll, { text: '[poll Lunch?: Soup / Bread]' }],
  ['a sticker', real.sticker, { text: '[sticker Wave]' }],
  [
    'the first message of a post',
    real.firstOfAPost,
    { chat: { address: FORUM }, threadId: POST, text: '[post: When to sow?]\nIn April?' },
  ],
  [
    'a message in a private thread',
    real.inPrivate,
    { chat: { address: PRIVATE, within: GUILD }, threadId: null },
  ],
])('%s', (_name, payload, event) => {
  expect(heard(payload)).toMatchObject(event);
});

test('a message that a bot has built of components', () => {
  expect(heard(real.builtByABot)).toBeNull();
  expect(heard(real.builtByABot, { bots: true })).toMatchObject({ text: '## Build 512\npassed\nin 3 min' });
});

test('a preview is no edit, and an edit is one', () => {
  expect(inbound('MESSAGE_UPDATE', real.unfurled, known())).toBeNull();
  expect(inbound('MESSAGE_UPDATE', real.edited, known())).toMatchObject({ kind: 'edit', text: 'Supa Cold' });
});

describe('a reaction', () => {
  test.each([
    ['to the bot', real.reactionToTheBot],
    ['to a persona', real.reactionToAPersona],
  ])('%s', (_name, payload) => {
    expect(inbound('MESSAGE_REACTION_ADD', payload, known())).toMatchObject({
      kind: 'reaction',
      sign: '🔥',
      platformMessageIds: [MESSAGE],
      sender: { name: 'Annie' },
    });
  });
});

test('a native command of somebody who manages the server', () => {
  expect(inbound('INTERACTION_CREATE', real.command, known())).toMatchObject({
    text: '/persona switch Luna',
    sender: { name: 'Annie', administrator: true },
    chat: group,
  });
});
