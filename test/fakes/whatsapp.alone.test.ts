/** The fake WhatsApp against the real library: what it does there is what the channel's tests build on. */
import makeWASocket, {
  type AuthenticationCreds,
  type DEFAULT_CONNECTION_CONFIG,
  downloadMediaMessage,
  initAuthCreds,
  type SignalDataTypeMap,
  type SignalKeyStore,
  type WAMessage,
  type WAMessageUpdate,
  type WASocket,
} from '@whiskeysockets/baileys';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type SentMessage, startFakeWhatsApp } from './whatsapp.js';
import type { FakeWhatsApp } from './whatsapp-words.js';

let fake: FakeWhatsApp;
let device: Device;

beforeEach(async () => {
  fake = await startFakeWhatsApp();
  device = makeDevice(fake);
});
afterEach(async () => {
  await device.stop();
  await fake.close();
});

describe('linking', () => {
  it('takes on a device by its QR code, which then logs in by itself', async () => {
    await device.link();
    expect(device.creds.me?.id).toBe('4915100000000:1@s.whatsapp.net');
    await device.stop();
    device.start();
    await fake.until(() => fake.loggedIn(), 'logged in again');
    expect(fake.logins()).toBe(2);
    expect(fake.refs()).toEqual([]);
  });

  it('takes on a device by its pairing code, and only by the right one', async () => {
    const code = await device.askForCode();
    await expect(fake.enterCode('AAAA-AAAA')).rejects.toThrow('not the one');
    expect(fake.paired()).toBe(false);
    await fake.enterCode(`${code.slice(0, 4)}-${code.slice(4)}`);
    await fake.until(() => fake.loggedIn(), 'logged in');
  });

  it('takes on another device in the place of the first, and people begin anew with it', async () => {
    await device.link();
    const anna = fake.peer(1);
    const group = fake.group(1, { members: [anna] });
    fake.say({ from: anna, in: group, text: 'to the first' });
    await device.texts(1);
    await device.stop();
    device = makeDevice(fake);
    await device.link();
    expect(device.creds.me?.id).toBe('4915100000000:2@s.whatsapp.net');
    fake.say({ from: anna, text: 'to the second' });
    fake.say({ from: anna, in: group, text: 'and in the group' });
    await device.texts(2);
    await device.socket().sendMessage(group.id, { text: 'here' });
    await fake.until(() => fake.sentTo(group).length === 1, 'the answer');
    expect(fake.complaints).toEqual([]);
  });

  it('refuses a QR code that nobody shows', async () => {
    await expect(fake.scan('https://wa.me/settings/linked_devices#2@no,a,b,c,1')).rejects.toThrow(
      'not shown',
    );
  });
});

describe('a linked device', () => {
  beforeEach(() => device.link());

  it('hears a person and answers, in the same session', async () => {
    const anna = fake.peer(1, 'Anna');
    const said = fake.say({ from: anna, text: 'hello' });
    const [first] = await device.texts(1);
    expect(first).toMatchObject({ id: said.id, text: 'hello', chat: anna.lid, type: 'notify' });
    expect(first?.message.key.remoteJidAlt).toBe(anna.pn);
    await device.socket().sendMessage(anna.pn, { text: 'hi Anna' }, { quoted: first?.message as WAMessage });
    await fake.until(() => fake.sent[0]?.acked === true, 'the answer');
    expect(fake.sentTo(anna)).toMatchObject([{ text: 'hi Anna', to: anna.pn, times: 1, quotedId: said.id }]);
    fake.say({ from: anna, text: 'and again', replyTo: fake.sent[0]?.id as string });
    const [, second] = await device.texts(2);
    expect(second?.message.message?.extendedTextMessage?.contextInfo).toMatchObject({
      stanzaId: fake.sent[0]?.id,
      participant: fake.own.lid,
      quotedMessage: { extendedTextMessage: { text: 'hi Anna' } },
    });
    await fake.until(() => fake.pending() === 0, 'receipts for everything');
    expect(fake.complaints).toEqual([]);
  });

  it('hears of reading, writes that it types, and reads', async () => {
    const anna = fake.peer(1);
    await device.socket().sendMessage(anna.lid, { text: 'out of the blue' });
    await fake.until(() => fake.sent.length === 1, 'sent');
    fake.read(fake.sent[0] as SentMessage);
    await device.saw(() => device.statuses.includes(4), 'a read receipt');
    const said = fake.say({ from: anna, text: 'there?' });
    const [text] = await device.texts(1);
    await device.socket().readMessages([text?.message.key ?? {}]);
    await device.socket().sendPresenceUpdate('composing', anna.lid);
    await fake.until(() => fake.presences.some(({ state }) => state === 'composing'), 'composing');
    expect(fake.receipts.filter(({ type }) => type === 'read')).toMatchObject([
      { ids: [said.id], to: anna.lid },
    ]);
  });

  it('changes and takes back, on both sides', async () => {
    const anna = fake.peer(1);
    const said = fake.say({ from: anna, text: 'helo' });
    fake.edit(said, 'hello', 'plain');
    fake.revoke(said);
    await device.saw(() => device.updates.length >= 2, 'both changes');
    expect(device.updates).toMatchObject([
      {
        key: { id: said.id },
        update: { message: { editedMessage: { message: { conversation: 'hello' } } } },
      },
      { key: { id: said.id }, update: { message: null } },
    ]);
    const sent = await device.socket().sendMessage(anna.pn, { text: 'wold' });
    const key = sent?.key as WAMessage['key'];
    await device.socket().sendMessage(anna.pn, { text: 'world', edit: key });
    await device.socket().sendMessage(anna.pn, { react: { text: '👍', key: { ...key, id: said.id } } });
    await device.socket().sendMessage(anna.pn, { delete: key });
    await fake.until(() => fake.sent[0]?.revoked === true, 'taken back');
    expect(fake.sent).toMatchObject([{ text: 'world', edited: true, revoked: true }]);
    expect(fake.reactions).toEqual([{ to: anna.pn, on: said.id, emoji: '👍' }]);
  });

  it('edits as phones do since May 2026: a message of its own, which the library hands out as it is', async () => {
    const anna = fake.peer(1);
    const said = fake.say({ from: anna, text: 'helo' });
    fake.edit(said, 'hello');
    await device.saw(() => device.upserts.length === 2, 'both');
    const [original, edit] = device.upserts;
    expect(original?.message.message?.messageContextInfo?.messageSecret).toHaveLength(32);
    expect(edit?.message.key.id).not.toBe(said.id);
    expect(edit?.message.message?.secretEncryptedMessage).toMatchObject({
      targetMessageKey: { id: said.id, fromMe: true },
      secretEncType: 2,
    });
    expect(device.updates).toEqual([]);
  });

  it('talks in a group', async () => {
    const [anna, ben] = [fake.peer(1, 'Anna'), fake.peer(2, 'Ben')];
    const group = fake.group(1, { subject: 'Hiking', members: [anna, ben] });
    fake.say({ from: anna, in: group, text: 'you too?', mention: true });
    const [first] = await device.texts(1);
    expect(first?.message.key).toMatchObject({
      remoteJid: group.id,
      participant: anna.lid,
      participantAlt: anna.pn,
    });
    expect(first?.text).toBe(`@${fake.own.lid.split('@')[0]} you too?`);
    expect(first?.message.message?.extendedTextMessage?.contextInfo?.mentionedJid).toEqual([fake.own.lid]);
    for (const text of ['me too', 'and you, Ben?']) await device.socket().sendMessage(group.id, { text });
    await fake.until(() => fake.sentTo(group).length === 2, 'both in the group');
    fake.say({ from: ben, in: group, text: 'and me' });
    fake.say({ from: anna, in: group, text: 'good' });
    // The library may hand out two messages of one moment in either order.
    expect((await device.texts(3)).map(({ text }) => text)).toEqual(
      expect.arrayContaining([first?.text, 'and me', 'good']),
    );
    expect((await device.socket().groupMetadata(group.id)).subject).toBe('Hiking');
    expect(fake.complaints).toEqual([]);
    fake.removeFromGroup(group);
    await device.saw(() => device.upserts.some(({ message }) => message.messageStubType === 28), 'removed');
    await expect(device.socket().groupMetadata(group.id)).rejects.toThrow('forbidden');
  });

  it('sends and takes files', async () => {
    const undo = await fake.serveMediaHere();
    const anna = fake.peer(1);
    const [photo, paper] = [Buffer.from('not really a photo'), Buffer.alloc(100_000, 'paper ')];
    fake.say({ from: anna, text: 'look', image: { bytes: photo, mimeType: 'image/png' } });
    await device.saw(() => device.upserts.length === 1, 'the image');
    const message = device.upserts[0]?.message as WAMessage;
    expect(message.message?.imageMessage?.caption).toBe('look');
    expect(await downloadMediaMessage(message, 'buffer', {})).toEqual(photo);
    fake.cdn.fail('download', 500);
    await expect(downloadMediaMessage(message, 'buffer', {})).rejects.toThrow('Failed to fetch');
    fake.cdn.fail('upload', 503);
    const document = { document: paper, mimetype: 'text/plain', fileName: 'paper.txt', caption: 'read' };
    await device.socket().sendMessage(anna.pn, document);
    await fake.until(() => fake.sent.length === 1, 'the document');
    expect(fake.sent[0]).toMatchObject({ kind: 'document', text: 'read' });
    expect(fake.sent[0]?.file).toEqual({ name: 'paper.txt', mimeType: 'text/plain', bytes: paper });
    undo();
  });

  it('hears what the owner types on the phone, and what comes without a number', async () => {
    const anna = fake.peer(1);
    fake.ownPhoneSays({ to: anna, text: 'by hand' });
    fake.ownPhoneSays({ to: 'self', text: 'note' });
    fake.hideNumber(anna);
    fake.say({ from: anna, text: 'hidden' });
    const ben = fake.peer(2);
    fake.address(ben, 'pn');
    fake.say({ from: ben, text: 'by number' });
    await device.saw(() => device.upserts.length === 4, 'all four');
    const keys = device.upserts.map(({ message: { key, message } }) => [message?.conversation, key] as const);
    expect(Object.fromEntries(keys)).toMatchObject({
      'by hand': { fromMe: true, remoteJid: anna.lid, remoteJidAlt: anna.pn },
      note: { fromMe: true, remoteJid: fake.own.lid },
      hidden: { fromMe: false, remoteJid: anna.lid, remoteJidAlt: undefined },
      'by number': { fromMe: false, remoteJid: ben.pn, remoteJidAlt: ben.lid },
    });
    await device.socket().sendMessage(fake.own.pn, { text: 'noted' });
    await fake.until(() => fake.sent.length === 1, 'the note');
    expect(fake.sent[0]).toMatchObject({ chat: null, text: 'noted' });
  });

  it('is given again what it could not read, and what waited, and doubles', async () => {
    const anna = fake.peer(1);
    const group = fake.group(1, { members: [anna] });
    fake.say({ from: anna, text: 'one' });
    fake.say({ from: anna, in: group, text: 'two' });
    await device.texts(2);
    fake.faults.badMac(anna);
    const three = fake.say({ from: anna, text: 'three' });
    await device.texts(3);
    fake.faults.badMac(anna);
    const four = fake.say({ from: anna, in: group, text: 'four' });
    await device.texts(4);
    const asked = fake.receipts.filter(({ type }) => type === 'retry').map(({ ids }) => ids[0]);
    expect(asked).toEqual([three.id, four.id]);

    await device.stop();
    fake.say({ from: anna, text: 'late one' });
    fake.say({ from: anna, in: group, text: 'late two' });
    device.start();
    const late = (await device.texts(6)).slice(4);
    expect(late.map(({ text, type }) => [text, type])).toEqual([
      ['late one', 'append'],
      ['late two', 'append'],
    ]);

    fake.faults.sameIdTwice();
    const twice = fake.say({ from: anna, text: 'twice' });
    expect((await device.texts(8)).slice(6).map(({ id }) => id)).toEqual([twice.id, twice.id]);
    fake.faults.sameCiphertextTwice();
    fake.say({ from: anna, text: 'the same' });
    await device.saw(() => device.upserts.some(({ message }) => message.messageStubType === 2), 'unreadable');
    await fake.until(() => fake.pending() === 0, 'receipts for everything');
  });

  it('sends again what a phone lost, with the same id', async () => {
    const anna = fake.peer(1);
    await device.socket().sendMessage(anna.lid, { text: 'one' });
    await fake.until(() => fake.sent.length === 1, 'one');
    fake.faults.forgetSession(anna);
    await device.socket().sendMessage(anna.lid, { text: 'two' });
    await fake.until(() => fake.sent.length === 2, 'two, at the second go');
    expect(fake.sent[1]).toMatchObject({ text: 'two', times: 2, retries: 1 });
    fake.faults.requestRetry(fake.sent[0]?.id as string);
    await fake.until(() => fake.sent[0]?.times === 2, 'one, again');
  });

  it('meets what can go wrong', async () => {
    const anna = fake.peer(1);
    fake.faults.errorAck(463);
    await device.socket().sendMessage(anna.pn, { text: 'refused' });
    await device.saw(() => device.statuses.includes(0), 'the refusal');
    expect(fake.sent).toEqual([]);

    fake.faults.dropAfterTake();
    await device.socket().sendMessage(anna.pn, { text: 'cut' }, { messageId: '3EB0CAFE' });
    await fake.until(() => fake.logins() === 2, 'back');
    await device.socket().sendMessage(anna.pn, { text: 'cut' }, { messageId: '3EB0CAFE' });
    await fake.until(() => fake.sent[0]?.acked === true, 'the ack');
    expect(fake.sent).toMatchObject([{ id: '3EB0CAFE', cut: true, acked: true, times: 2 }]);

    fake.faults.dropBeforeTake();
    await device.socket().sendMessage(anna.pn, { text: 'never came' });
    await fake.until(() => fake.logins() === 3 && fake.loggedIn(), 'back');
    fake.faults.stallAcks(true);
    await device.socket().sendMessage(anna.pn, { text: 'in silence' });
    await fake.until(() => fake.sent.length === 2, 'taken');
    expect(fake.sent[1]).toMatchObject({ text: 'in silence', acked: false });
    fake.faults.stallAcks(false);
    await fake.until(() => fake.sent[1]?.acked === true, 'the ack, late');
    fake.faults.refuseLogin(503);

    for (const end of [
      () => fake.faults.closeWith(503),
      () => fake.faults.replaced(),
      () => fake.faults.closeWith(428),
    ]) {
      const before = fake.logins();
      end();
      await fake.until(() => fake.logins() > before && fake.loggedIn(), 'back again');
    }
    expect(device.ends.slice(-4)).toEqual([503, 503, 440, 428]);
    fake.faults.hangUp();
    await fake.until(() => fake.logins() === 7 && fake.loggedIn(), 'back, whatever it took that for');
    await fake.shut();
    await fake.open();
    await fake.until(() => fake.loggedIn(), 'back after it was away');
    fake.faults.logOut();
    await device.saw(() => device.ends.filter((code) => code === 401).length >= 2, 'logged out for good');
    expect(fake.paired()).toBe(false);
  });
});

interface Text {
  id: string;
  chat: string;
  text: string;
  type: string;
  message: WAMessage;
}

interface Device {
  creds: AuthenticationCreds;
  socket(): WASocket;
  start(): void;
  link(): Promise<void>;
  texts(count: number): Promise<Text[]>;
  /** Asks for a pairing code instead of a scan. */
  askForCode(): Promise<string>;
  saw(condition: () => boolean, what: string): Promise<void>;
  upserts: { type: string; message: WAMessage }[];
  /** Changes of messages, but for their status; and those. */
  updates: WAMessageUpdate[];
  statuses: number[];
  /** Why connections ended. */
  ends: number[];
  stop(): Promise<void>;
}

function makeDevice(whatsapp: FakeWhatsApp): Device {
  const creds = initAuthCreds();
  const keys = keysInMemory();
  const upserts: { type: string; message: WAMessage }[] = [];
  const updates: WAMessageUpdate[] = [];
  const statuses: number[] = [];
  const ends: number[] = [];
  let socket: WASocket | null = null;
  let stopped = true;
  let onQr: (qr: string) => void = (qr) => void whatsapp.scan(qr);

  function connect(): void {
    const opened = makeWASocket({
      auth: { creds, keys },
      logger: SILENT,
      waWebSocketUrl: whatsapp.url,
      shouldSyncHistoryMessage: () => false,
      retryRequestDelayMs: 1,
    });
    socket = opened;
    opened.ev.on('creds.update', (update) => void Object.assign(creds, update));
    opened.ev.on('connection.update', ({ qr, connection, lastDisconnect }) => {
      if (qr !== undefined) onQr(qr);
      if (connection !== 'close') return;
      ends.push(
        (lastDisconnect?.error as { output?: { statusCode?: number } } | undefined)?.output?.statusCode ?? 0,
      );
      if (!stopped) setTimeout(() => stopped || connect(), 10);
    });
    opened.ev.on('messages.update', (changes) => {
      for (const change of changes) {
        if (typeof change.update.status === 'number') statuses.push(change.update.status);
        else updates.push(change);
      }
    });
    opened.ev.on('messages.upsert', ({ messages, type }) => {
      for (const message of messages) {
        // What became of a message of ours comes with it where it was quicker.
        if (message.key.fromMe === true && typeof message.status === 'number') statuses.push(message.status);
        if (message.key.fromMe !== true || type === 'notify') upserts.push({ type, message });
      }
    });
  }

  const device: Device = {
    creds,
    upserts,
    updates,
    statuses,
    ends,
    saw: eventually,
    askForCode: () =>
      new Promise((resolve, reject) => {
        onQr = () => {
          onQr = () => {};
          device.socket().requestPairingCode(whatsapp.own.number).then(resolve, reject);
        };
        device.start();
      }),
    socket() {
      if (socket === null) throw new Error('not started');
      return socket;
    },
    start() {
      stopped = false;
      connect();
    },
    async link() {
      device.start();
      await whatsapp.until(() => whatsapp.loggedIn(), 'logged in');
    },
    async texts(count) {
      const found = () =>
        upserts.flatMap(({ type, message }) => {
          const { conversation, extendedTextMessage } = message.message ?? {};
          const text = conversation ?? extendedTextMessage?.text;
          if (text == null || message.key.fromMe === true) return [];
          return [{ id: message.key.id ?? '', chat: message.key.remoteJid ?? '', text, type, message }];
        });
      await eventually(() => found().length >= count, `${count} texts`);
      return found();
    },
    async stop() {
      stopped = true;
      await socket?.end(undefined);
      await whatsapp.until(() => !whatsapp.loggedIn(), 'gone');
    },
  };
  return device;
}

const nothing = () => {};
const SILENT: (typeof DEFAULT_CONNECTION_CONFIG)['logger'] = {
  level: 'silent',
  child: () => SILENT,
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
};

function keysInMemory(): SignalKeyStore {
  const shelves = new Map<string, Map<string, unknown>>();
  const shelf = (type: string) => shelves.get(type) ?? shelves.set(type, new Map()).get(type) ?? new Map();
  return {
    get<T extends keyof SignalDataTypeMap>(type: T, ids: string[]) {
      const found = ids.filter((id) => shelf(type).has(id)).map((id) => [id, shelf(type).get(id)]);
      return Object.fromEntries(found) as { [id: string]: SignalDataTypeMap[T] };
    },
    set(data) {
      for (const [type, values] of Object.entries(data)) {
        for (const [id, value] of Object.entries(values)) {
          if (value === null) shelf(type).delete(id);
          else shelf(type).set(id, value);
        }
      }
    },
  };
}

async function eventually(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`not seen: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
