import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { InboundMessage } from '../../src/core/message.js';
import { startFakeWhatsApp } from '../fakes/whatsapp.js';
import type { FakeWhatsApp, Peer } from '../fakes/whatsapp-words.js';
import { eventually, type Gateway, linked, messages } from './whatsapp-gateway.js';

/** One link for all: each test talks to people of its own. */
let fake: FakeWhatsApp;
let gateway: Gateway;
let people = 0;

beforeAll(async () => {
  fake = await startFakeWhatsApp();
  gateway = await linked(fake);
});

afterAll(async () => {
  await gateway.stop();
  await fake.close();
});

function somebody(name?: string): Peer {
  people += 1;
  return fake.peer(people, name);
}

/** What came from a person, wherever they said it. */
async function heardFrom(peer: Peer, count: number): Promise<InboundMessage[]> {
  const theirs = () =>
    messages(gateway).filter(({ sender }) => [peer.pn, peer.lid].includes(sender.address) && !sender.self);
  await eventually(() => theirs().length >= count, `${count} messages of ${peer.name}`);
  return theirs();
}

const editsOf = (peer: Peer) =>
  gateway
    .events()
    .flatMap((event) => (event.kind === 'edit' && event.sender.address === peer.pn ? [event] : []));

const textsFrom = async (peer: Peer, count: number) => (await heardFrom(peer, count)).map(({ text }) => text);

describe('with one person', () => {
  test('a message comes in, and an answer that quotes it goes out', async () => {
    const anna = somebody('Anna');
    const said = fake.say({ from: anna, text: 'good morning' });
    expect(await heardFrom(anna, 1)).toMatchObject([
      {
        chat: { address: anna.pn, otherAddress: anna.lid, kind: 'direct', title: 'Anna' },
        sender: { address: anna.pn, otherAddress: anna.lid, name: 'Anna' },
        platformMessageId: said.id,
        text: 'good morning',
      },
    ]);
    const before = fake.sent.length;
    expect(fake.presences.map(({ state }) => state)).not.toContain('available');
    await gateway.channel.setTyping({ address: anna.pn, threadId: null, kind: 'direct' });
    const result = await gateway.send(anna.pn, 'and to you', { key: '7', replyTo: said.id });
    const [sent] = fake.sent.slice(before);
    expect(result).toEqual({ kind: 'sent', platformMessageId: sent?.id });
    expect(sent).toMatchObject({ text: 'and to you', quotedId: said.id, acked: true, times: 1 });
    await fake.until(() => fake.receipts.some(({ type, ids }) => type === 'read' && ids.includes(said.id)));
    expect(fake.presences.map(({ state }) => state)).toContain('composing');
    expect(fake.complaints).toEqual([]);
  });

  test('what nobody remembers is answered without quoting it', async () => {
    const anna = somebody();
    expect(await gateway.send(anna.pn, 'hello', { key: '8', replyTo: 'LONGAGO' })).toMatchObject({
      kind: 'sent',
    });
    expect(fake.sentTo(anna)).toMatchObject([{ text: 'hello', quotedId: null }]);
  });

  test('somebody whose number is hidden is talked to by the other address', async () => {
    const ghost = somebody('Ghost');
    fake.hideNumber(ghost);
    fake.say({ from: ghost, text: 'boo' });
    const [message] = await heardFrom(ghost, 1);
    expect(message?.chat).toEqual({ address: ghost.lid, kind: 'direct', title: 'Ghost' });
    expect(await gateway.send(ghost.lid, 'who is there?', { key: '9' })).toMatchObject({ kind: 'sent' });
    expect(fake.sentTo(ghost)).toMatchObject([{ text: 'who is there?' }]);
  });

  test('whoever is addressed by number first and otherwise later stays the same person', async () => {
    const ben = somebody('Ben');
    fake.address(ben, 'pn');
    fake.say({ from: ben, text: 'one' });
    await heardFrom(ben, 1);
    fake.address(ben, 'lid');
    fake.hideNumber(ben);
    fake.say({ from: ben, text: 'two' });
    const both = (await heardFrom(ben, 2)).map(({ chat, sender }) => [
      chat.address,
      chat.otherAddress,
      sender.address,
    ]);
    expect(both).toEqual([
      [ben.pn, ben.lid, ben.pn],
      [ben.pn, ben.lid, ben.pn],
    ]);
  });

  test('edits and what was taken back', async () => {
    const anna = somebody();
    const said = fake.say({ from: anna, text: 'helo' });
    await heardFrom(anna, 1);
    fake.edit(said, 'hello', 'plain');
    fake.revoke(said);
    const changes = () => gateway.events().filter(({ kind }) => kind === 'edit' || kind === 'deleted');
    await eventually(() => changes().length === 2, 'both changes');
    expect(changes()).toMatchObject([
      {
        kind: 'edit',
        chat: { address: anna.pn },
        sender: { address: anna.pn },
        platformMessageId: said.id,
        text: 'hello',
      },
      { kind: 'deleted', chat: { address: anna.pn }, platformMessageIds: [said.id] },
    ]);
  });

  test.each([
    ['lid', 'lid'],
    ['pn', 'pn'],
    ['lid', 'pn'],
    ['pn', 'lid'],
  ] as const)('an edit that is encrypted with its message (addresses %s and %s)', async (author, editor) => {
    const anna = somebody();
    const said = fake.say({ from: anna, text: 'helo' });
    await heardFrom(anna, 1);
    fake.edit(said, 'hello', { forms: [author, editor] });
    await eventually(() => editsOf(anna).length === 1, 'the edit');
    expect(editsOf(anna)).toMatchObject([
      { chat: { address: anna.pn }, platformMessageId: said.id, text: 'hello', mentionsBot: false },
    ]);
    expect(editsOf(anna)[0]?.editedAt).toBeGreaterThan(1_700_000_000_000);
  });

  test("an edit that cannot be read, and one of somebody else's message: dropped, and said in the log", async () => {
    const [anna, ben] = [somebody(), somebody()];
    const group = fake.group(701, { members: [anna, ben] });
    const said = fake.say({ from: anna, in: group, text: 'mine' });
    await heardFrom(anna, 1);
    const dropped = () =>
      gateway.lines.filter(({ message }) => message.startsWith('an edit could not be decrypted'));
    const before = dropped().length;
    fake.say({ from: ben, in: group, content: fake.sealedEdit(said, 'not mine', ben) });
    fake.say({ from: anna, in: group, content: fake.sealedEdit({ ...said, id: 'NOBODYS' }, 'x', anna) });
    fake.say({ from: ben, in: group, text: 'and on' });
    expect(await textsFrom(ben, 1)).toEqual(['and on']);
    expect(dropped().slice(before)).toMatchObject([{ level: 'debug' }, { level: 'debug' }]);
    expect(editsOf(anna)).toEqual([]);
    expect(editsOf(ben)).toEqual([]);
  });

  test('a reaction is handed in, with what it was put to', async () => {
    const anna = somebody();
    const said = fake.say({ from: anna, text: 'one' });
    await heardFrom(anna, 1);
    fake.react(anna, said, '👍');
    fake.say({ from: anna, text: 'two' });
    await heardFrom(anna, 2);
    const reactions = gateway.batches
      .flatMap(({ events }) => events)
      .filter((event) => event.kind === 'reaction' && event.sender.address === anna.pn);
    expect(reactions).toMatchObject([
      { chat: { address: anna.pn, kind: 'direct' }, platformMessageIds: [said.id], sign: '👍' },
    ]);
  });

  test('answers disappear where the chat says so', async () => {
    const anna = somebody();
    const contextInfo = { expiration: 86_400 };
    fake.say({
      from: anna,
      content: { ephemeralMessage: { message: { extendedTextMessage: { text: 'psst', contextInfo } } } },
    });
    expect(await textsFrom(anna, 1)).toEqual(['psst']);
    await gateway.send(anna.pn, 'yes?', { key: '10' });
    expect(fake.sentTo(anna)[0]?.content.extendedTextMessage?.contextInfo?.expiration).toBe(86_400);
  });

  test('who is not let in gets no blue ticks', async () => {
    const [stranger, friend] = [somebody(), somebody()];
    gateway.onReceive(async ({ events }) =>
      events.flatMap((event) =>
        event.kind === 'message' && event.sender.address === stranger.pn ? [event.platformMessageId] : [],
      ),
    );
    const unread = fake.say({ from: stranger, text: 'hey you' });
    const read = fake.say({ from: friend, text: 'hey' });
    await fake.until(() => fake.receipts.some(({ type, ids }) => type === 'read' && ids.includes(read.id)));
    gateway.onReceive(async () => []);
    expect(fake.receipts.filter(({ ids }) => ids.includes(unread.id)).map(({ type }) => type)).toEqual([
      'inactive',
    ]);
  });
});

test('what the owner types on the phone is theirs; with themselves they can talk', async () => {
  const anna = somebody('Anna A.');
  fake.say({ from: anna, text: 'are you there?' });
  await heardFrom(anna, 1);
  fake.ownPhoneSays({ to: anna, text: 'by hand' });
  fake.ownPhoneSays({ to: 'self', text: 'note to self' });
  const own = () => messages(gateway).filter(({ sender }) => sender.self);
  await eventually(() => own().length === 2, 'both');
  const sender = { self: true, address: fake.own.pn, otherAddress: fake.own.lid };
  expect(own()).toMatchObject([
    { chat: { address: anna.pn, otherAddress: anna.lid, title: 'Anna A.' }, sender, text: 'by hand' },
    {
      chat: { address: fake.own.pn, otherAddress: fake.own.lid, kind: 'direct' },
      sender,
      text: 'note to self',
    },
  ]);
  const before = gateway.batches.length;
  const result = await gateway.send(fake.own.pn, 'noted', { key: '11' });
  expect(result).toMatchObject({ kind: 'sent' });
  expect(fake.sent.at(-1)).toMatchObject({ chat: null, text: 'noted' });
  fake.say({ from: anna, text: 'still here' });
  await heardFrom(anna, 2);
  expect(gateway.batches.length).toBe(before + 1);
});

describe('in a group', () => {
  test('a mention and a reply are told; the title is known soon; who manages it is asked', async () => {
    const [anna, ben] = [somebody('Anna'), somebody('Ben')];
    const group = fake.group(1, { subject: 'Hiking', members: [anna, ben] });
    fake.say({ from: anna, in: group, text: 'you too?', mention: true });
    const [first] = await heardFrom(anna, 1);
    expect(first).toMatchObject({
      chat: { address: group.id, kind: 'group' },
      sender: { address: anna.pn, otherAddress: anna.lid, name: 'Anna' },
      text: expect.stringMatching(/^@(me|Own) you too\?$/),
      mentionsBot: true,
    });
    expect(await gateway.send(group.id, 'me too', { key: '12' })).toMatchObject({ kind: 'sent' });
    const [sent] = fake.sentTo(group);
    fake.say({ from: ben, in: group, text: 'good', replyTo: sent?.id ?? '' });
    fake.say({ from: ben, in: group, text: 'and you, Anna?', mention: [anna] });
    expect(await heardFrom(ben, 2)).toMatchObject([
      {
        chat: { title: 'Hiking' },
        mentionsBot: false,
        replyTo: { platformMessageId: sent?.id, text: 'me too', ours: true },
      },
      { text: '@Anna and you, Anna?', mentionsBot: false, replyTo: null },
    ]);
    // The fake makes the first member its administrator.
    expect(await gateway.channel.isAdministrator(group.id, anna.pn)).toBe(true);
    expect(await gateway.channel.isAdministrator(group.id, anna.lid)).toBe(true);
    expect(await gateway.channel.isAdministrator(group.id, ben.pn)).toBe(false);
    expect(await gateway.channel.isAdministrator(group.id, fake.own.pn)).toBe(false);
  });

  test('an encrypted edit of what the owner typed, and in a group', async () => {
    const anna = somebody();
    const group = fake.group(700, { members: [anna] });
    const [typed, said] = [
      fake.ownPhoneSays({ to: anna, text: 'on my wy' }),
      fake.say({ from: anna, in: group, text: 'wht?' }),
    ];
    await heardFrom(anna, 1);
    fake.edit(typed, 'on my way');
    fake.edit(said, 'what?');
    const ids = [typed.id, said.id];
    const edits = () =>
      gateway
        .events()
        .flatMap((event) => (event.kind === 'edit' && ids.includes(event.platformMessageId) ? [event] : []));
    await eventually(() => edits().length === 2, 'both');
    expect(edits()).toMatchObject([
      { platformMessageId: typed.id, sender: { self: true }, text: 'on my way' },
      { platformMessageId: said.id, chat: { address: group.id }, text: 'what?' },
    ]);
  });

  test('an answer in a group quotes what it answers', async () => {
    const anna = somebody();
    const group = fake.group(2, { members: [anna] });
    const said = fake.say({ from: anna, in: group, text: 'question' });
    await heardFrom(anna, 1);
    await gateway.send(group.id, 'answer', { key: '13', replyTo: said.id });
    expect(fake.sentTo(group)).toMatchObject([{ text: 'answer', quotedId: said.id }]);
  });

  test('out of it, sending is refused for good, and nobody can be asked about it', async () => {
    const anna = somebody();
    const group = fake.group(3, { members: [anna] });
    fake.say({ from: anna, in: group, text: 'one' });
    await heardFrom(anna, 1);
    await gateway.send(group.id, 'two', { key: '14' });
    fake.removeFromGroup(group);
    await fake.until(() => fake.pending() === 0, 'the news of it taken');
    const result = await gateway.send(group.id, 'three', { key: '15' });
    expect(result).toMatchObject({ kind: 'refused', reason: expect.stringContaining('403') });
    await expect(gateway.channel.isAdministrator(group.id, anna.pn)).rejects.toThrow(
      /administrators of the WhatsApp group/,
    );
  });
});

describe('what is more than words', () => {
  test('an album: each picture is told, with what they have in common', async () => {
    const anna = somebody();
    const image = { bytes: Buffer.from('not really a picture'), mimeType: 'image/jpeg' };
    const [first] = fake.sayAlbum({ from: anna, text: 'the garden', images: [image, image, image] });
    const told = await heardFrom(anna, 3);
    expect(told.map(({ text, attachments }) => [text, attachments?.length])).toEqual([
      ['the garden', 1],
      ['', 1],
      ['', 1],
    ]);
    expect(told[0]?.platformMessageId).toBe(first?.id);
    expect(new Set(told.map(({ album }) => album)).size).toBe(1);
    expect(told[0]?.album).not.toBe(first?.id);
  });

  test('a forward says so', async () => {
    const anna = somebody();
    fake.say({ from: anna, text: '/reset', forwarded: true });
    expect(await heardFrom(anna, 1)).toMatchObject([{ text: '/reset', forwardedFrom: '' }]);
  });

  test('what is to be viewed once, and what is newer than the library, is at least a line', async () => {
    const anna = somebody();
    fake.say({ from: anna, viewOnce: true });
    fake.say({ from: anna, later: true });
    fake.say({ from: anna, text: 'well' });
    expect(await textsFrom(anna, 3)).toEqual([
      '[message to be viewed once: only the phone can open it]',
      '[message of a kind that I cannot read]',
      'well',
    ]);
  });
});

describe('what goes wrong on the way in', () => {
  test('100 messages in one second from somebody new: all of them, in order', async () => {
    const anna = somebody();
    const texts = Array.from({ length: 100 }, (_, n) => `message ${n}`);
    for (const text of texts) fake.say({ from: anna, text });
    expect(await textsFrom(anna, 100)).toEqual(texts);
    await fake.until(() => fake.pending() === 0, 'a receipt for each');
  });

  test('a bad MAC: it is asked for again, and comes', async () => {
    const anna = somebody();
    fake.say({ from: anna, text: 'one' });
    fake.faults.badMac(anna);
    const broken = fake.say({ from: anna, text: 'two' });
    expect(await textsFrom(anna, 2)).toEqual(['one', 'two']);
    expect(fake.receipts.some(({ type, ids }) => type === 'retry' && ids.includes(broken.id))).toBe(true);
  });

  test('the same id twice is told twice, under one id', async () => {
    const anna = somebody();
    fake.faults.sameIdTwice();
    const said = fake.say({ from: anna, text: 'twice' });
    const told = () =>
      gateway.batches.filter(
        ({ events: [event] }) => event?.kind === 'message' && event.platformMessageId === said.id,
      );
    await eventually(() => told().length === 2, 'both');
    expect(await textsFrom(anna, 1)).toEqual(['twice']);
  });

  test('the same ciphertext twice is one message, and the conversation goes on', async () => {
    const anna = somebody();
    fake.say({ from: anna, text: 'one' });
    await heardFrom(anna, 1);
    fake.faults.sameCiphertextTwice();
    const said = fake.say({ from: anna, text: 'two' });
    fake.say({ from: anna, text: 'three' });
    expect(await textsFrom(anna, 3)).toEqual(['one', 'two', 'three']);
    const told = gateway.batches.filter(
      ({ events: [event] }) => event?.kind === 'message' && event.platformMessageId === said.id,
    );
    expect(told).toHaveLength(1);
    expect(await gateway.send(anna.pn, 'four', { key: '16' })).toMatchObject({ kind: 'sent' });
    await fake.until(() => fake.pending() === 0, 'nothing waits');
  });

  test.each([
    ['nothing in it', {}],
    ['a vote', { pollUpdateMessage: {} }],
    ['a call', { call: { callKey: Buffer.from('x') } }],
    ['an edit of nothing', { protocolMessage: { type: 14 } }],
    ['wrappers in wrappers', { ephemeralMessage: { message: { viewOnceMessage: { message: {} } } } }],
    ['a file that is nowhere', { imageMessage: { mimetype: '' } }],
    ['a quotation of nobody', { extendedTextMessage: { text: '', contextInfo: { stanzaId: 'x' } } }],
  ])('%s: the next message comes all the same', async (_what, content) => {
    const anna = somebody();
    fake.say({ from: anna, content });
    fake.say({ from: anna, text: 'well' });
    await eventually(
      () => messages(gateway).some(({ sender, text }) => sender.address === anna.pn && text === 'well'),
      'well',
    );
  });
});

// Leaves something with the server that nobody takes.
test('a bad MAC for good: the next message comes all the same', async () => {
  const [anna, ben] = [somebody(), somebody()];
  fake.say({ from: anna, text: 'one' });
  await heardFrom(anna, 1);
  fake.faults.badMacForever(anna);
  fake.say({ from: anna, text: 'never' });
  fake.say({ from: ben, text: 'well' });
  expect(await textsFrom(ben, 1)).toEqual(['well']);
  expect(await textsFrom(anna, 1)).toEqual(['one']);
});

describe('what goes wrong on the way out', () => {
  test('refused for good, or only now, as WhatsApp says', async () => {
    const anna = somebody();
    fake.faults.errorAck(463);
    const ben = somebody();
    expect(await gateway.send(ben.pn, 'x', { key: '20' })).toMatchObject({
      kind: 'unreachable',
      reason: expect.stringContaining('463'),
      retryAfterMs: expect.any(Number),
    });
    fake.faults.errorAck(479);
    expect(await gateway.send(anna.pn, 'x', { key: '21' })).toMatchObject({
      kind: 'unreachable',
      taken: 'no',
      reason: expect.stringContaining('479'),
    });
    fake.faults.errorAck(403);
    expect(await gateway.send(anna.pn, 'x', { key: '22' })).toMatchObject({ kind: 'refused' });
    expect(fake.sentTo(anna)).toEqual([]);
  });

  test('a phone that cannot read it gets it again', async () => {
    const anna = somebody();
    await gateway.send(anna.pn, 'one', { key: '23' });
    fake.faults.forgetSession(anna);
    await gateway.send(anna.pn, 'two', { key: '24' });
    await fake.until(() => fake.sentTo(anna).length === 2, 'two, at the second go');
    expect(fake.sentTo(anna)[1]).toMatchObject({ text: 'two', retries: 1 });
  });

  test('a server that never says that it took it', async () => {
    const anna = somebody();
    gateway.clock.quick.add(45_000);
    fake.faults.stallAcks(true);
    const result = await gateway.send(anna.pn, 'x', { key: '25' });
    expect(result).toMatchObject({
      kind: 'unreachable',
      taken: 'unknown',
      reason: expect.stringContaining('in time'),
    });
    gateway.clock.quick.clear();
    fake.faults.stallAcks(false);
    expect(await gateway.send(anna.pn, 'x', { key: '25' })).toMatchObject({ kind: 'sent' });
    expect(fake.sentTo(anna)).toHaveLength(1);
  });

  test('a signal that aborts ends the waiting', async () => {
    const anna = somebody();
    const ending = new AbortController();
    fake.faults.stallAcks(true);
    const sending = gateway.send(anna.pn, 'x', { key: '26', signal: ending.signal });
    await fake.until(() => fake.sentTo(anna).length === 1, 'taken');
    ending.abort();
    expect(await sending).toMatchObject({ kind: 'unreachable', taken: 'unknown' });
    fake.faults.stallAcks(false);
  });

  test('a group that cannot be asked for may be asked later', async () => {
    const anna = somebody();
    const group = fake.group(9, { members: [anna] });
    fake.faults.failQuery('w:g2', 429);
    expect(await gateway.send(group.id, 'x', { key: '27' })).toMatchObject({
      kind: 'unreachable',
      taken: 'no',
    });
    expect(await gateway.send(group.id, 'x', { key: '27' })).toMatchObject({ kind: 'sent' });
  });
});
