/** What we change of our own messages on WhatsApp: edits and deletions, as the phones of others see them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Part, SendOptions } from '../../src/core/channel.js';
import { startFakeWhatsApp } from '../fakes/whatsapp.js';
import type { FakeWhatsApp, Peer, SentMessage } from '../fakes/whatsapp-words.js';
import { sendOptions } from '../harness/sending.js';
import { eventually, type Gateway, linked, memoryState } from './whatsapp-gateway.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

let fake: FakeWhatsApp;
let gateway: Gateway;
let people = 0;

beforeAll(async () => {
  fake = await startFakeWhatsApp();
  gateway = await linked(fake);
});
beforeEach(() => {
  fake.complaints.length = 0;
});
afterAll(async () => {
  await gateway.stop();
  await fake.close();
});

function somebody(): Peer {
  people += 1;
  return fake.peer(people);
}

/** Says it, and resolves with the message as people have it. */
async function said(to: string, text: string | Part): Promise<SentMessage> {
  people += 1;
  await gateway.send(to, text, { key: String(people) });
  const sent = fake.sent.findLast((each) => each.to === to);
  if (sent === undefined) throw new Error('it did not arrive');
  return sent;
}

const placeOf = ({ to }: SentMessage) => ({
  ...{ address: to, threadId: null },
  kind: to.endsWith('@g.us') ? ('group' as const) : ('direct' as const),
});
const optionsOf = ({ at }: SentMessage, more: Partial<SendOptions> = {}) =>
  sendOptions({ createdAt: at, ...more });
const edit = (sent: SentMessage, text: string, more: Partial<SendOptions> & Partial<Part> = {}) => {
  const { file, marks = [], ...options } = more;
  const part = file === undefined ? { text, marks } : { text, marks, file };
  return gateway.channel.edit(placeOf(sent), sent.id, part, optionsOf(sent, options));
};
const remove = (sent: SentMessage, more: Partial<SendOptions> = {}) =>
  gateway.channel.remove(placeOf(sent), sent.id, optionsOf(sent, more));

/** Changes that phones did not follow. What the owner's phone could not read, it asks for again. */
const unheeded = () => fake.complaints.filter((words) => !words.startsWith('Own could not read'));

async function backAgain(logins: number): Promise<void> {
  await fake.until(() => fake.logins() > logins, 'back');
  await eventually(() => gateway.channel.status().connected, 'connected');
}

describe('an edit', () => {
  test('replaces the words, again and again, where the message stands', async () => {
    const anna = somebody();
    const sent = await said(anna.pn, 'one');
    const done = { kind: 'sent', platformMessageId: sent.id };
    expect(await edit(sent, 'one two')).toEqual(done);
    const bold = { kind: 'bold' as const, offset: 0, length: 3 };
    expect(await edit(sent, 'one two three', { marks: [bold] })).toEqual(done);
    expect(fake.sentTo(anna)).toMatchObject([{ text: '*one* two three', edited: true, quotedId: null }]);
    // Words that stood there before are an edit of their own.
    expect(await edit(sent, 'one two')).toEqual(done);
    expect(fake.sentTo(anna)).toMatchObject([{ text: 'one two' }]);
    expect(unheeded()).toEqual([]);
  });

  test('in a group, with the name of who speaks', async () => {
    const group = fake.group(1, { members: [somebody(), somebody()] });
    const sent = await said(group.id, 'one');
    const appearance = { personaId: 'luna', name: 'Luna', avatar: null };
    expect(await edit(sent, 'two', { appearance, leads: true })).toMatchObject({ kind: 'sent' });
    expect(sent).toMatchObject({ text: '*Luna*\ntwo', edited: true });
    expect(unheeded()).toEqual([]);
  });

  test('keeps what the message answers', async () => {
    const anna = somebody();
    const asked = fake.say({ from: anna, text: 'which?' });
    await eventually(() => gateway.texts().includes('which?'), 'the question');
    await gateway.send(anna.pn, 'this', { key: '900', replyTo: asked.id });
    const [sent] = fake.sentTo(anna);
    if (sent) await edit(sent, 'that');
    expect(fake.sentTo(anna)).toMatchObject([{ text: 'that', quotedId: asked.id }]);
  });

  test('is not tried when a quarter of an hour is over', async () => {
    const sent = await said(somebody().pn, 'one');
    sent.at -= 15 * MINUTE;
    expect(await edit(sent, 'two')).toEqual({
      kind: 'refused',
      reason: 'WhatsApp edits messages for 15 minutes only',
    });
    sent.at += MINUTE;
    expect(await edit(sent, 'two')).toMatchObject({ kind: 'sent' });
    expect(sent.text).toBe('two');
    expect(unheeded()).toEqual([]);
  });

  test('is refused for a file, and for a message that somebody deleted', async () => {
    const sent = await said(somebody().pn, 'one');
    const file = { path: '/nowhere', name: 'a.txt' };
    expect(await edit(sent, 'two', { file })).toMatchObject({ kind: 'refused' });
    fake.revoke(sent);
    await eventually(
      () =>
        gateway.events().some((event) => event.kind === 'deleted' && event.platformMessageIds[0] === sent.id),
      'the deletion by the owner, on the phone',
    );
    expect(await edit(sent, 'two')).toEqual({ kind: 'refused', reason: 'the message was deleted' });
    expect(sent.text).toBe('one');
  });

  test.each(['dropAfterTake', 'dropBeforeTake'] as const)(
    'cut off (%s): repeated, it stands there',
    async (fault) => {
      const sent = await said(somebody().pn, 'one');
      fake.faults[fault]();
      const logins = fake.logins();
      expect(await edit(sent, 'two')).toMatchObject({ kind: 'unreachable' });
      expect(gateway.channel.status().connected).toBe(false);
      expect(await edit(sent, 'two')).toMatchObject({ kind: 'unreachable', taken: 'no' });
      await backAgain(logins);
      expect(await edit(sent, 'two')).toMatchObject({ kind: 'sent' });
      expect(sent).toMatchObject({ text: 'two', edited: true });
      expect(unheeded()).toEqual([]);
    },
  );

  test('cut off by the gateway, it does not come after a later one', async () => {
    const sent = await said(somebody().pn, 'one');
    const cut = new AbortController();
    fake.faults.stallAcks(true);
    const first = edit(sent, 'two', { signal: cut.signal });
    const second = edit(sent, 'three', { signal: cut.signal });
    cut.abort();
    expect(await first).toMatchObject({ kind: 'unreachable' });
    expect(await second).toMatchObject({ kind: 'unreachable' });
    fake.faults.stallAcks(false);
    expect(await edit(sent, 'four')).toMatchObject({ kind: 'sent' });
    expect(sent.text).toBe('four');
  });

  test('refused by WhatsApp, for good or only now', async () => {
    const sent = await said(somebody().pn, 'one');
    fake.faults.errorAck(479);
    expect(await edit(sent, 'two')).toMatchObject({ kind: 'unreachable', taken: 'no' });
    fake.faults.errorAck(403);
    expect(await edit(sent, 'two')).toMatchObject({ kind: 'refused' });
  });

  test('a phone that could not read the message gets its newest words', async () => {
    const anna = somebody();
    const sent = await said(anna.pn, 'one');
    await edit(sent, 'two');
    const before = sent.times;
    fake.faults.requestRetry(sent.id);
    await fake.until(() => sent.times > before, 'again');
    expect(sent.content.extendedTextMessage?.text).toBe('two');
  });

  test('a phone that could not read the edit asks for it, and gets it', async () => {
    const anna = somebody();
    const sent = await said(anna.pn, 'one');
    fake.faults.forgetSession(anna);
    await edit(sent, 'two');
    await fake.until(() => sent.text === 'two', 'the edit, at the second go');
    expect(sent).toMatchObject({ edited: true });
  });
});

describe('a deletion', () => {
  test('takes the message from everybody', async () => {
    const anna = somebody();
    const sent = await said(anna.pn, 'one');
    expect(await remove(sent)).toBe(true);
    expect(sent.revoked).toBe(true);
    expect(await remove(sent)).toBe(true);
    const group = fake.group(2, { members: [anna, somebody()] });
    const inGroup = await said(group.id, 'two');
    expect(await remove(inGroup)).toBe(true);
    expect(inGroup.revoked).toBe(true);
    expect(unheeded()).toEqual([]);
  });

  test('also of a message that is not edited any more, but not of one from days ago', async () => {
    const sent = await said(somebody().pn, 'one');
    sent.at -= 49 * HOUR;
    expect(await remove(sent)).toBe(false);
    expect(sent.revoked).toBe(false);
    sent.at += 2 * HOUR;
    expect(await remove(sent)).toBe(true);
    expect(sent.revoked).toBe(true);
    expect(unheeded()).toEqual([]);
  });

  test('cut off: not certain, and repeated it is', async () => {
    const sent = await said(somebody().pn, 'one');
    fake.faults.dropBeforeTake();
    const logins = fake.logins();
    expect(await remove(sent)).toBe(false);
    expect(gateway.channel.status().connected).toBe(false);
    expect(await remove(sent)).toBe(false);
    await backAgain(logins);
    expect(await remove(sent)).toBe(true);
    expect(sent.revoked).toBe(true);
  });
});

test('what the owner edits of our messages on the phone is no message, and no edit, of anybody', async () => {
  const anna = somebody();
  const sent = await said(anna.pn, 'one');
  const before = gateway.batches.length;
  fake.edit(sent, 'by hand', 'plain');
  fake.edit(sent, 'by hand again');
  fake.say({ from: anna, text: 'and then' });
  await eventually(() => gateway.texts().includes('and then'), 'the next message');
  const since = gateway.batches.slice(before).flatMap(({ events }) => events);
  expect(since.map(({ kind }) => kind)).toEqual(['message']);
});

test('an edit that a phone could not read comes after a restart from the store', async () => {
  const anna = somebody();
  const sent = await said(anna.pn, 'one');
  fake.faults.forgetSession(anna);
  const left = memoryState(gateway.state.values);
  fake.faults.stallAcks(true);
  const asked: string[] = [];
  void edit(sent, 'two');
  await fake.until(
    () => fake.complaints.some((words) => words.includes('could not read')),
    'it came unreadable',
  );
  fake.faults.hangUp();
  await gateway.stop();
  fake.faults.stallAcks(false);
  gateway = await linked(fake, {
    ...{ before: gateway, state: left },
    async sentPart(key) {
      asked.push(key);
      return { text: 'two', marks: [] };
    },
  });
  await fake.until(() => sent.text === 'two', 'the edit, from the next process');
  expect(asked).toContain(String(people));
});
