/** Names of people that a platform writes into a text are told beside it where they could be taken for an address. */
import { expect, test } from 'vitest';
import { Directory } from '../../src/channels/discord/directory.js';
import { inbound as discord } from '../../src/channels/discord/inbound.js';
import { mentioning } from '../../src/channels/kit/incoming.js';
import { inbound as telegram } from '../../src/channels/telegram/inbound.js';

const NAME = 'see evil.example';

test('on Discord, in a message and in an edit of it', () => {
  const me = { id: '424242424242424242', name: 'Coterie', applicationId: '1' };
  const known = { me, directory: new Directory(), isOurWebhook: () => false, bots: false };
  const user = { id: '100000000000000100', username: 'anna', global_name: NAME };
  const message = {
    ...{ id: '1300000000000000001', channel_id: '100000000000000600', channel_type: 1, type: 0, flags: 0 },
    ...{ author: { id: '100000000000000101', username: 'ben' }, content: `hi <@${user.id}>` },
    ...{ timestamp: '2026-01-02T03:04:05.678000+00:00', mentions: [user, { id: me.id, username: 'x' }] },
  };
  const expected = { text: `hi @${NAME}`, mentions: [NAME] };
  expect(discord('MESSAGE_CREATE', message, known)).toMatchObject(expected);
  const edited = { ...message, edited_timestamp: new Date().toISOString() };
  expect(discord('MESSAGE_UPDATE', edited, known)).toMatchObject({ kind: 'edit', ...expected });
  expect(discord('MESSAGE_CREATE', { ...message, content: 'hi' }, known)).not.toHaveProperty('mentions');
});

test('on Telegram, whom it mentions without a handle', () => {
  const entity = { type: 'text_mention', offset: 3, length: NAME.length, user: { id: 9, first_name: NAME } };
  const message = {
    ...{ message_id: 7, date: 1, chat: { id: -100, type: 'supergroup', title: 'A' } },
    ...{ from: { id: 1, first_name: 'A' }, text: `hi ${NAME}, well`, entities: [entity] },
  };
  const bot = { id: 424242, username: 'Coterie_Bot' };
  expect(telegram([{ update_id: 1, message }], bot)).toMatchObject([{ mentions: [NAME] }]);
});

test('names that could be none are not kept', () => {
  expect(mentioning(['Ann', 'Ben B'])).toEqual({});
  expect(mentioning(['Dr. X', 'Dr. X', 'Ann'])).toEqual({ mentions: ['Dr. X'] });
});
