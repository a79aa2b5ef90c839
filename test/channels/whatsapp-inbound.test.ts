import { proto } from '@whiskeysockets/baileys';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isOwnId, keyOf, markOf, messageId, plainJid } from '../../src/channels/whatsapp/ids.js';
import type { KnownContext } from '../../src/channels/whatsapp/inbound.js';
import { inbound } from '../../src/channels/whatsapp/inbound.js';
import { readSource } from '../../src/channels/whatsapp/media.js';
import type { InboundMessage } from '../../src/core/message.js';
import { album, files, replyTo, secondFiles, things, unseen, words } from './whatsapp-payloads.js';

const MARK = 'AB12CD34';
const ANNA = '491701111@s.whatsapp.net';
const ANNA_LID = '2001@lid';
const BEN = '491702222@s.whatsapp.net';
const GROUP = '12036300@g.us';

const known: KnownContext = {
  me: { phone: '4915700@s.whatsapp.net', lid: '9000@lid', name: 'Olga' },
  sentByUs: (id) => isOwnId(MARK, id),
  otherForm: (jid) => (jid === '2002@lid' ? BEN : null),
  nameOf: (jid) => (jid === BEN ? 'Ben' : null),
  titleOf: () => null,
  authorOf: (_chat, id) => (id === 'BENS' ? BEN : null),
  manages: (_group, person) => person.phone === ANNA,
};

/** A message of Anna's, as the library hands it out: decoded from the wire. */
function from(key: object, content: proto.IMessage, about: object = {}) {
  const message = proto.Message.decode(proto.Message.encode(proto.Message.fromObject(content)).finish());
  return {
    key: { remoteJid: ANNA_LID, remoteJidAlt: ANNA, fromMe: false, id: 'M1', participant: '', ...key },
    message,
    messageTimestamp: 1_700_000_000,
    pushName: 'Anna',
    ...about,
  };
}

const inGroup = {
  remoteJid: GROUP,
  remoteJidAlt: undefined,
  participant: '2001:7@lid',
  participantAlt: ANNA,
};
const said = (text: string) => from({}, { conversation: text });
const read = (message: unknown) => inbound(message, known) as InboundMessage;

describe('who writes where', () => {
  test('a person has two addresses; the chat is named by the number, without the device', () => {
    expect(read(from({ remoteJid: '2001:12@lid' }, { conversation: 'hello' }))).toEqual({
      kind: 'message',
      chat: { address: ANNA, otherAddress: ANNA_LID, kind: 'direct', title: 'Anna' },
      threadId: null,
      platformMessageId: 'M1',
      sender: { address: ANNA, otherAddress: ANNA_LID, name: 'Anna', administrator: false },
      text: 'hello',
      sentAt: 1_700_000_000_000,
      mentionsBot: false,
      replyTo: null,
    });
    expect(read(from({ remoteJid: ANNA, remoteJidAlt: ANNA_LID }, { conversation: 'x' })).chat).toMatchObject(
      {
        address: ANNA,
        otherAddress: ANNA_LID,
      },
    );
  });

  test('somebody whose number nobody knows is the other address', () => {
    const message = read(from({ remoteJid: '77@lid', remoteJidAlt: undefined }, { conversation: 'x' }));
    expect(message.chat).toEqual({ address: '77@lid', kind: 'direct', title: 'Anna' });
  });

  test('the number is found where it was seen before', () => {
    const message = read(from({ remoteJid: '2002@lid', remoteJidAlt: undefined }, { conversation: 'x' }));
    expect(message.chat).toMatchObject({ address: BEN, otherAddress: '2002@lid' });
  });

  test('in a group, the sender is the participant', () => {
    const message = read(from(inGroup, { conversation: 'hi all' }));
    expect(message.chat).toEqual({ address: GROUP, kind: 'group', title: GROUP });
    expect(message.sender).toEqual({
      address: ANNA,
      otherAddress: ANNA_LID,
      name: 'Anna',
      administrator: false,
    });
    expect(inbound(message, known)).toBeNull();
    expect(inbound(from({ ...inGroup, participant: '' }, { conversation: 'x' }), known)).toBeNull();
  });

  test('what the owner types on the phone is theirs, in every chat', () => {
    const owner = { self: true, address: known.me.phone, otherAddress: '9000@lid', name: 'Olga' };
    const alone = { remoteJid: '9000@lid', remoteJidAlt: undefined, fromMe: true };
    expect(read(from(alone, { conversation: 'note' }))).toMatchObject({
      chat: { address: known.me.phone, otherAddress: '9000@lid', kind: 'direct', title: 'Olga' },
      sender: owner,
    });
    const toBen = { remoteJid: '2002@lid', remoteJidAlt: known.me.phone, fromMe: true };
    expect(read(from(toBen, { conversation: 'on my way' }))).toMatchObject({
      chat: { address: BEN, otherAddress: '2002@lid', title: 'Ben' },
      sender: owner,
    });
    expect(read(from({ ...inGroup, fromMe: true }, { conversation: 'me too' }))).toMatchObject({
      chat: { address: GROUP },
      sender: owner,
    });
  });

  test('a number stands for who has no name', () => {
    const message = read(from({}, { conversation: 'x' }, { pushName: undefined }));
    expect(message.sender.name).toBe('+491701111');
  });

  test.each([
    ['status@broadcast'],
    ['123@newsletter'],
    ['867@bot'],
    ['0@s.whatsapp.net'],
    ['@g.us'],
    ['nonsense'],
    [''],
  ])('%s is no chat with people', (remoteJid) => {
    expect(inbound(from({ remoteJid, remoteJidAlt: undefined }, { conversation: 'x' }), known)).toBeNull();
  });

  test('what somebody sends to a list of people is read in the chat with them', () => {
    const toList = { remoteJid: '1700000000@broadcast', remoteJidAlt: undefined };
    const listed = { ...toList, participant: '2001:7@lid', participantAlt: ANNA };
    expect(read(from(listed, { conversation: 'party on Friday' }))).toMatchObject({
      chat: { address: ANNA, otherAddress: ANNA_LID, kind: 'direct', title: 'Anna' },
      sender: { address: ANNA, name: 'Anna' },
      text: 'party on Friday',
    });
    expect(inbound(from(toList, { conversation: 'x' }), known)).toBeNull();
    expect(inbound(from({ ...listed, fromMe: true }, { conversation: 'x' }), known)).toBeNull();
  });

  test('what we sent ourselves is nothing', () => {
    const id = messageId(MARK, '17');
    expect(inbound(from({ id, fromMe: true }, { conversation: 'x' }), known)).toBeNull();
  });
});

describe('what was said', () => {
  test('a forward that is answered is told from the words of whoever forwarded it', () => {
    const text = { text: 'quoted', contextInfo: { isForwarded: true } };
    const quotedMessage = { extendedTextMessage: text };
    const contextInfo = { stanzaId: 'Q1', participant: ANNA, quotedMessage };
    expect(inbound(from({}, { extendedTextMessage: { text: 'well?', contextInfo } }), known)).toMatchObject({
      replyTo: { text: 'quoted', forwardedFrom: '' },
    });
  });

  const context = { stanzaId: 'Q1', participant: ANNA, quotedMessage: { conversation: 'quoted' } };
  test.each<[string, proto.IMessage, string]>([
    ['a long text', { extendedTextMessage: { text: 'long' } }, 'long'],
    ['one that disappears', { ephemeralMessage: { message: { conversation: 'soon gone' } } }, 'soon gone'],
    [
      'one that mentions a group',
      { groupMentionedMessage: { message: { extendedTextMessage: { text: 'all of @x' } } } },
      'all of @x',
    ],
    ['a button', { buttonsResponseMessage: { selectedDisplayText: 'Yes', type: 1 } }, 'Yes'],
    ['a line of a list', { listResponseMessage: { title: 'Second' } }, 'Second'],
    ['a sticker', { stickerMessage: { mimetype: 'image/webp' } }, '[sticker]'],
    [
      'a place',
      { locationMessage: { degreesLatitude: 52.5, degreesLongitude: 13.25, name: 'Café' } },
      '[location: Café, 52.5, 13.25]',
    ],
    [
      'a moving place',
      { liveLocationMessage: { degreesLatitude: 1.5, degreesLongitude: 2.5 } },
      '[live location: 1.5, 2.5]',
    ],
    [
      'a contact',
      {
        contactMessage: { displayName: 'Carl', vcard: 'BEGIN:VCARD\nitem1.TEL;waid=49:+49 30 1\nEND:VCARD' },
      },
      '[contact: Carl, +49 30 1]',
    ],
    [
      'a poll',
      { pollCreationMessageV3: { name: 'When?', options: [{ optionName: 'Mon' }, { optionName: 'Tue' }] } },
      '[poll: When? — Mon / Tue]',
    ],
    ['an invitation', { groupInviteMessage: { groupName: 'Hikers' } }, '[invitation to a group: Hikers]'],
    [
      'an event',
      { eventMessage: { name: 'Picnic', startTime: 1_700_000_000 } },
      '[event: Picnic, 2023-11-14T22:13:20.000Z]',
    ],
  ])('%s', (_what, content, text) => {
    expect(read(from({}, content)).text).toBe(text);
  });

  test.each<[string, proto.IMessage]>([
    ['a reaction that is taken back', { reactionMessage: { key: { id: 'M0' }, text: '' } }],
    ['a reaction to nothing', { reactionMessage: { text: '👍' } }],
    ['a vote', { pollUpdateMessage: { pollCreationMessageKey: { id: 'M0' } } }],
    ['keys of a group', { senderKeyDistributionMessage: { groupId: GROUP } }],
    ['the traffic of devices', { protocolMessage: { type: 6, appStateSyncKeyShare: { keys: [] } } }],
    ['nothing', {}],
    ['an empty text', { extendedTextMessage: { text: ' ' } }],
  ])('%s is nothing', (_what, content) => {
    expect(inbound(from({}, content), known)).toBeNull();
  });

  test('a reaction says what it was put to', () => {
    const key = { id: 'M0', remoteJid: GROUP, fromMe: true };
    const content = { reactionMessage: { key, text: '👍', senderTimestampMs: 1_700_000_000_123 } };
    expect(inbound(from(inGroup, content), known)).toEqual({
      kind: 'reaction',
      chat: { address: GROUP, kind: 'group' },
      sender: { address: ANNA, otherAddress: ANNA_LID, name: 'Anna' },
      platformMessageIds: ['M0'],
      sign: '👍',
      sentAt: 1_700_000_000_123,
    });
  });

  test('a message that could not be read is nothing', () => {
    const stub = { ...said('x'), message: undefined, messageStubType: 2 };
    expect(inbound(stub, known)).toBeNull();
  });

  test('files come with what is needed to fetch them', () => {
    const media = {
      mediaKey: Buffer.alloc(32, 7),
      directPath: '/v/t62/1?x=y',
      url: 'https://mmg.whatsapp.net/v/t62/1?x=y',
      fileLength: 30_000_000,
      fileSha256: Buffer.alloc(32, 9),
    };
    const picture = read(
      from({}, { imageMessage: { ...media, caption: 'look', mimetype: 'image/jpeg', contextInfo: context } }),
    );
    expect(picture).toMatchObject({
      text: 'look',
      attachments: [{ kind: 'image', name: null, mimeType: 'image/jpeg', bytes: 30_000_000, seconds: null }],
      replyTo: { platformMessageId: 'Q1', text: 'quoted', senderName: '+491701111', ours: false },
    });
    expect(readSource(picture.attachments?.[0]?.source ?? '')).toEqual({
      type: 'image',
      key: Buffer.alloc(32, 7).toString('base64'),
      path: '/v/t62/1?x=y',
      url: 'https://mmg.whatsapp.net/v/t62/1?x=y',
      sha256: Buffer.alloc(32, 9).toString('base64'),
      message: { remoteJid: ANNA_LID, id: 'M1', fromMe: false },
    });
    const kinds = [
      { audioMessage: { ...media, ptt: true, seconds: 4, mimetype: 'audio/ogg; codecs=opus' } },
      { audioMessage: { ...media, seconds: 200 } },
      { videoMessage: media },
      { ptvMessage: media },
      { documentMessage: { ...media, fileName: 'a.pdf' } },
      { documentWithCaptionMessage: { message: { documentMessage: { ...media, title: 'b' } } } },
      { viewOnceMessageV2: { message: { imageMessage: media } } },
    ].map((content) => read(from({}, content)).attachments?.[0]);
    expect(kinds.map((each) => [each?.kind, each?.name, each?.seconds])).toEqual([
      ['voice', null, 4],
      ['audio', null, 200],
      ['video', null, null],
      ['video', null, null],
      ['document', 'a.pdf', null],
      ['document', 'b', null],
      ['image', null, null],
    ]);
  });

  test('mentions are names; ours is a mention of us, by either address', () => {
    const mention = (mentionedJid: string[], text: string) =>
      read(from(inGroup, { extendedTextMessage: { text, contextInfo: { mentionedJid } } }));
    expect(mention(['9000@lid'], '@9000 hi')).toMatchObject({ text: '@Olga hi', mentionsBot: true });
    expect(mention([known.me.phone], 'hi @4915700!')).toMatchObject({ text: 'hi @Olga!', mentionsBot: true });
    expect(mention(['2002@lid'], '@2002 and @20025')).toMatchObject({
      text: '@Ben and @20025',
      mentionsBot: false,
    });
    expect(mention(['3003@lid'], '@3003?')).toMatchObject({ text: '@3003?', mentionsBot: false });
    expect(mention(['.*@lid'], '@.*?')).toMatchObject({ text: '@.*?' });
  });

  test.each([
    ['in a group', () => inGroup],
    ['in a direct chat', () => ({})],
  ])('the file of a message that is quoted is known again %s', (_where, where) => {
    const file = { mediaKey: Buffer.alloc(32, 1), directPath: '/v/x', mimetype: 'audio/ogg', ptt: true };
    const key = where();
    const said = read(from({ ...key, id: 'Q1' }, { audioMessage: file }));
    const contextInfo = { stanzaId: 'Q1', participant: ANNA_LID, quotedMessage: { audioMessage: file } };
    const quoting = read(from(key, { extendedTextMessage: { text: 'x', contextInfo } }));
    expect(quoting.attachments).toMatchObject([{ ofReply: true, told: true }]);
    expect(quoting.attachments?.[0]?.source).toBe(said.attachments?.[0]?.source);
  });

  test('a reply to what we sent is ours; one to what the owner typed is not', () => {
    const reply = (stanzaId: string, participant: string, key: object = inGroup) => {
      const quoting = { stanzaId, participant, quotedMessage: { imageMessage: {} } };
      return read(from(key, { extendedTextMessage: { text: 'x', contextInfo: quoting } })).replyTo;
    };
    const ours = {
      platformMessageId: messageId(MARK, '5'),
      senderName: 'Olga',
      text: '[image]',
      told: true,
      ours: true,
    };
    expect(reply(messageId(MARK, '5'), '9000@lid')).toEqual(ours);
    expect(reply('3A0102030405060708', '9000@lid')).toMatchObject({ ours: false });
    expect(reply(messageId(markOf(Buffer.from('an earlier link')), '5'), '9000@lid')).toMatchObject({
      ours: true,
    });
    expect(reply('3EB0FFFFFFFFFFFFFFFFFF', '2002@lid')).toMatchObject({ ours: false, senderName: 'Ben' });
  });
});

describe('forwards', () => {
  test('say so; whoever passes them on mentions nobody with them, and answers nothing', () => {
    expect(read(from(inGroup, words.forwarded))).toMatchObject({
      text: '/reset is what they told me, @Olga',
      forwardedFrom: '',
      mentionsBot: false,
      replyTo: null,
    });
    expect(read(from({}, words.forwardedPhoto))).toMatchObject({
      text: 'seen this?',
      forwardedFrom: '',
      attachments: [{ kind: 'image' }],
    });
    expect(read(from({}, words.text))).not.toHaveProperty('forwardedFrom');
  });
});

describe('albums', () => {
  test('what announces one says nothing; each picture says which it stands in', () => {
    expect(inbound(from({}, album.parent), known)).toBeNull();
    expect(read(from({}, album.first))).toMatchObject({ text: 'the garden', album: '3AALBUM' });
    expect(read(from({}, album.second))).toMatchObject({
      text: '',
      album: '3AALBUM',
      attachments: [{ kind: 'image', bytes: 184_213 }],
    });
    expect(read(from({}, files.photo))).not.toHaveProperty('album');
  });

  test.each(Object.entries(secondFiles))(
    '%s of a picture that is there already is nothing',
    (_what, content) => {
      expect(inbound(from({}, content), known)).toBeNull();
    },
  );
});

describe('files of a message that is replied to', () => {
  test('come along, with what is needed to fetch them', () => {
    const message = read(from(inGroup, replyTo('Q1', BEN, files.photo)));
    expect(message).toMatchObject({
      text: 'what is this?',
      attachments: [{ kind: 'image', mimeType: 'image/jpeg', bytes: 184_213, ofReply: true }],
      replyTo: { platformMessageId: 'Q1', senderName: 'Ben', text: 'look', ours: false },
    });
    expect(readSource(message.attachments?.[0]?.source ?? '')).toMatchObject({
      key: Buffer.alloc(32, 7).toString('base64'),
      message: { remoteJid: GROUP, id: 'Q1', fromMe: false, participant: BEN },
    });
    const voice = read(from({}, replyTo('Q2', ANNA, files.voiceNote)));
    expect(voice.attachments).toMatchObject([{ kind: 'voice', seconds: 4, ofReply: true }]);
    expect(voice.replyTo?.text).toBe('[voice message]');
  });

  test('also of one that we sent; without a key there is nothing to fetch', () => {
    const ours = read(from({}, replyTo(messageId(MARK, '5'), '9000@lid', files.photo)));
    expect(readSource(ours.attachments?.[0]?.source ?? '')?.message).toMatchObject({ fromMe: true });
    expect(read(from({}, replyTo('Q1', ANNA, files.sticker)))).not.toHaveProperty('attachments');
    expect(read(from({}, replyTo('Q1', ANNA, { imageMessage: {} })))).not.toHaveProperty('attachments');
  });

  test('what we sent is known as ours by its id alone, as after a restart', () => {
    const bare = read(from(inGroup, replyTo(messageId(MARK, '5'), null, null)));
    expect(bare.replyTo).toEqual({
      platformMessageId: messageId(MARK, '5'),
      senderName: '',
      text: '',
      told: true,
      ours: true,
    });
    expect(read(from(inGroup, replyTo('3A01', null, null))).replyTo).toMatchObject({ ours: false });
  });
});

describe('everything else that people send', () => {
  test.each(Object.entries(things))('%s is at least a line', (_what, [content, line]) => {
    const message = read(from({}, content));
    expect(message.text).toBe(line);
    expect(message).not.toHaveProperty('attachments');
  });

  test.each(Object.entries(unseen))('%s is nothing', (_what, content) => {
    expect(inbound(from({}, content), known)).toBeNull();
  });
});

describe('a mention that is typed as it is', () => {
  test.each([
    ['of our number', words.typedMention, 'what do you say, @Olga?', true],
    ['of our other number', words.typedLid, '@Olga are you there', true],
    ['with a plus', words.typedWithPlus, 'ask @Olga', true],
    ['of others', words.typedOther, 'ask @49157001 or a@9000.example', false],
  ])('%s', (_what, content, text, mentionsBot) => {
    expect(read(from(inGroup, content))).toMatchObject({ text, mentionsBot });
  });
});

describe('what was changed', () => {
  const change = (key: proto.IMessageKey, more: proto.Message.IProtocolMessage, where: object = {}) =>
    inbound(from(where, { protocolMessage: { key, ...more } }), known);
  const edited = { type: 14, editedMessage: { conversation: 'better' }, timestampMs: 1_700_000_005_000 };

  test('an edit, plain and in its wrapper', () => {
    const event = {
      kind: 'edit',
      chat: { address: ANNA, otherAddress: ANNA_LID, kind: 'direct' },
      sender: { address: ANNA, otherAddress: ANNA_LID },
      platformMessageId: 'M0',
      text: 'better',
      mentionsBot: false,
      editedAt: 1_700_000_005_000,
    };
    expect(change({ id: 'M0', fromMe: true }, edited)).toEqual(event);
    const protocolMessage = { key: { id: 'M0', fromMe: true }, ...edited };
    expect(inbound(from({}, { editedMessage: { message: { protocolMessage } } }), known)).toEqual(event);
  });

  test('what somebody took back', () => {
    expect(change({ id: 'M0', fromMe: true }, { type: 0 })).toEqual({
      kind: 'deleted',
      chat: { address: ANNA, otherAddress: ANNA_LID, kind: 'direct' },
      sender: { address: ANNA, otherAddress: ANNA_LID },
      platformMessageIds: ['M0'],
    });
  });

  test('nobody changes what others said; who manages a group takes it back', () => {
    expect(change({ id: 'BENS', fromMe: true }, edited, inGroup)).toBeNull();
    expect(change({ id: 'M0', fromMe: false, participant: BEN }, edited, inGroup)).toBeNull();
    const back = { type: 0 };
    const others = { id: 'BENS', fromMe: false, participant: BEN };
    expect(change(others, back, inGroup)).toMatchObject({ kind: 'deleted', platformMessageIds: ['BENS'] });
    const notManaging = { ...inGroup, participant: '3003@lid', participantAlt: undefined };
    expect(change(others, back, notManaging)).toBeNull();
    expect(change(others, back)).toBeNull();
  });
});

test('of 300 kB of text the first 65,536 characters go through, and a marker', () => {
  const text = 'x😀'.repeat(100_000);
  const read65k = `${text.slice(0, 65_536)}\n\n<<truncated due to message-max-chars=65536>>`;
  expect(read(said(text)).text).toBe(read65k);
});

test('whatever stands in a field, nothing is thrown', () => {
  const kinds = Object.keys(proto.Message.prototype).filter((name) =>
    /Message|conversation|chat|call/.test(name),
  );
  const anything = fc.anything({ maxDepth: 3, withTypedArray: true, withNullPrototype: true });
  const fields = [
    'text',
    'caption',
    'contextInfo',
    'key',
    'type',
    'editedMessage',
    'message',
    'vcard',
    'options',
  ];
  const content = fc.dictionary(
    fc.constantFrom(...kinds),
    fc.oneof(anything, fc.dictionary(fc.constantFrom(...fields), anything)),
    { maxKeys: 3 },
  );
  const key = fc.dictionary(
    fc.constantFrom('remoteJid', 'remoteJidAlt', 'participant', 'fromMe', 'id'),
    fc.oneof(anything, fc.constantFrom(ANNA, ANNA_LID, GROUP, known.me.phone)),
  );
  const envelope = fc.dictionary(fc.constantFrom('messageTimestamp', 'pushName', 'message', 'key'), anything);
  fc.assert(
    fc.property(content, key, envelope, (fields, changed, about) => {
      const message = { ...said('hello'), message: fields, ...about };
      inbound({ ...message, key: { ...said('').key, ...changed } }, known);
      inbound({ ...message, key: changed }, known);
      inbound(about, known);
    }),
    { numRuns: 500 },
  );
  fc.assert(fc.property(anything, (payload) => void inbound(payload, known)));
});

test('addresses keep what names a person and lose the device', () => {
  expect(
    ['4917:12@s.whatsapp.net', '4917_1:12@s.whatsapp.net', '4917@c.us', '4917:99@hosted'].map(plainJid),
  ).toEqual(Array(4).fill('4917@s.whatsapp.net'));
  expect(['12:3@lid', '12:99@hosted.lid'].map(plainJid)).toEqual(['12@lid', '12@lid']);
  expect(plainJid('4917-1400@g.us')).toBe('4917-1400@g.us');
});

test('the key can be read from the id of our message, and from no other', () => {
  expect(messageId(MARK, '255')).toBe('3EB0AB12CD3400000000FF');
  const key = fc.oneof(
    fc.nat({ max: 999_999_999 }).map(String),
    fc.stringMatching(/^[A-Za-z0-9-]{1,24}$/),
    fc.constantFrom('0', '007', '17-late', '999999999999', '1099511627776'),
  );
  fc.assert(
    fc.property(key, key, (one, other) => {
      const id = messageId(MARK, one);
      expect(id).toMatch(/^[0-9A-Z]+$/);
      expect(keyOf(MARK, id)).toBe(one);
      expect(keyOf('00000000', id)).toBeNull();
      expect(id === messageId(MARK, other)).toBe(one === other);
      if (/^[1-9]\d{0,8}$/.test(one)) expect(id).toHaveLength(22);
    }),
  );
  fc.assert(fc.property(fc.string(), (id) => void keyOf(MARK, `3EB0${MARK}${id}`)));
});
