/** What the ids of the platforms tell by their form: who is let in by an id that nobody has been heard under. */
import { expect, it } from 'vitest';
import { CHANNELS } from '../../src/channels/list.js';
import { changedBy, changeId, keyOf, messageId } from '../../src/channels/whatsapp/ids.js';

const kindOf = (id: string) => {
  const [channel, address = ''] = id.split(/_(.*)/s);
  return CHANNELS.find(({ name }) => name === channel)?.ids.kindOf(address);
};

it.each([
  ['telegram_12345', 'sender'],
  ['telegram_1099511627775', 'sender'],
  ['telegram_1099511627776', null],
  ['telegram_-555', 'group'],
  ['telegram_-1001234567890', 'group'],
  ['telegram_-4000000000001', null],
  ['telegram_0', null],
  ['telegram_-0', null],
  ['telegram_007', null],
  ['telegram_1e5', null],
  ['telegram_@coterie', null],
  ['telegram_', null],
  ['telegram_12345/7', null],
  ['discord_112233445566778899', 'unknown'],
  ['discord_-112233445566778899', null],
  ['discord_anna', null],
  ['whatsapp_491701234567@s.whatsapp.net', 'sender'],
  ['whatsapp_123456789012345@lid', 'sender'],
  ['whatsapp_120363001234567890@g.us', 'group'],
  ['whatsapp_491701234567-1571234567@g.us', 'group'],
  ['whatsapp_491701234567', null],
  ['whatsapp_+491701234567@s.whatsapp.net', null],
  ['whatsapp_491701234567:12@s.whatsapp.net', null],
  ['whatsapp_491701234567@c.us', null],
  ['whatsapp_anna@s.whatsapp.net', null],
  ['whatsapp_0@s.whatsapp.net', null],
  ['whatsapp_status@broadcast', null],
  ['whatsapp_120363001234567890@newsletter', null],
])('%s is %s', (id, kind) => {
  expect(kindOf(id)).toBe(kind);
});

it('what is said to be expected has a form that there is', () => {
  for (const { ids } of CHANNELS) {
    const examples = ids.expected.match(/[a-z]+_[^ ,…]+(?=[ ,])/g) ?? [];
    expect(examples).not.toEqual([]);
    for (const each of examples) expect(kindOf(each), each).not.toBeNull();
  }
});

const MARK = 'ABCDEF01';
const NOW = Date.UTC(2026, 0, 15, 12);

it.each(['7', '999999999999', '0f3c8a-12'])(
  'a change of the WhatsApp message %s tells which it is of',
  (key) => {
    const id = messageId(MARK, key);
    const [edit, later, deletion] = [NOW, NOW + 1, null].map((at) => changeId(MARK, id, at));
    expect(new Set([id, edit, later, deletion]).size).toBe(4);
    expect(changedBy(MARK, edit ?? '')).toEqual({ id, kind: 'edit' });
    expect(changedBy(MARK, deletion ?? '')).toEqual({ id, kind: 'deletion' });
    expect(keyOf(MARK, changedBy(MARK, later ?? '')?.id ?? '')).toBe(key);
    for (const each of [edit, later, deletion]) expect(keyOf(MARK, each ?? '')).toBeNull();
    expect(changedBy(MARK, id)).toBeNull();
  },
);

it('a change of a message of an earlier link is found by nobody, and has an id all the same', () => {
  const before = messageId('00112233', '7');
  expect(changeId(MARK, before, NOW)).toMatch(/^3EB0ABCDEF01X[0-9A-F]{11}$/);
  expect(changedBy(MARK, changeId(MARK, before, NOW))).toBeNull();
  expect(changedBy(MARK, changeId(MARK, before, null))).toBeNull();
});
