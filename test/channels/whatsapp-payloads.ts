/**
 * What phones encrypt for us, by the types of the library (rc14, WAProto) and as people reported it from real phones:
 * edits WhiskeySockets/Baileys#2541 and #2743, the rest from captures in its issues. Names, numbers and keys are made up.
 */
import { proto } from '@whiskeysockets/baileys';

const { AssociationType } = proto.MessageAssociation;

/** Stands in every message of today's phones. */
const messageContextInfo = {
  deviceListMetadata: {
    senderKeyHash: Buffer.from('a1b2c3d4e5f60718', 'hex'),
    senderTimestamp: 1_779_000_000,
    recipientKeyHash: Buffer.from('0817f6e5d4c3b2a1', 'hex'),
    recipientTimestamp: 1_779_000_100,
  },
  deviceListMetadataVersion: 2,
  messageSecret: Buffer.alloc(32, 5),
} satisfies proto.IMessageContextInfo;

const photo = {
  url: 'https://mmg.whatsapp.net/o1/v/t24/f2/m269/AQN?ccb=9-4&oh=01_Q5&oe=68&_nc_sid=e6ed6c&mms3=true',
  mimetype: 'image/jpeg',
  fileSha256: Buffer.alloc(32, 9),
  fileLength: 184_213,
  height: 1600,
  width: 1200,
  mediaKey: Buffer.alloc(32, 7),
  fileEncSha256: Buffer.alloc(32, 8),
  directPath: '/o1/v/t24/f2/m269/AQN?ccb=9-4&oh=01_Q5&oe=68&_nc_sid=e6ed6c',
  mediaKeyTimestamp: 1_779_000_000,
  jpegThumbnail: Buffer.from('ffd8ffe0', 'hex'),
} satisfies proto.Message.IImageMessage;

const voiceNote = {
  url: 'https://mmg.whatsapp.net/v/t62.7117-24/1_n.enc?ccb=11-4&mms3=true',
  mimetype: 'audio/ogg; codecs=opus',
  fileSha256: Buffer.alloc(32, 3),
  fileLength: 9_412,
  seconds: 4,
  ptt: true,
  mediaKey: Buffer.alloc(32, 4),
  fileEncSha256: Buffer.alloc(32, 2),
  directPath: '/v/t62.7117-24/1_n.enc?ccb=11-4',
  waveform: Buffer.alloc(64, 12),
} satisfies proto.Message.IAudioMessage;

const poll = {
  name: 'When?',
  options: [{ optionName: 'Monday' }, { optionName: 'Tuesday' }],
  selectableOptionsCount: 1,
} satisfies proto.Message.IPollCreationMessage;

const child = (associationType: proto.MessageAssociation.AssociationType, messageIndex = 0) =>
  ({
    ...messageContextInfo,
    messageAssociation: {
      associationType,
      parentMessageKey: { remoteJid: '4915700@s.whatsapp.net', fromMe: true, id: '3AALBUM' },
      messageIndex,
    },
  }) satisfies proto.IMessageContextInfo;

export const words = {
  text: { conversation: 'good morning', messageContextInfo },
  forwarded: {
    extendedTextMessage: {
      text: '/reset is what they told me, @4915700',
      contextInfo: { forwardingScore: 3, isForwarded: true, mentionedJid: ['4915700@s.whatsapp.net'] },
    },
    messageContextInfo,
  },
  forwardedPhoto: {
    imageMessage: { ...photo, caption: 'seen this?', contextInfo: { forwardingScore: 1, isForwarded: true } },
    messageContextInfo,
  },
  typedMention: { conversation: 'what do you say, @4915700?', messageContextInfo },
  typedLid: { conversation: '@9000 are you there', messageContextInfo },
  typedWithPlus: { conversation: 'ask @+4915700', messageContextInfo },
  typedOther: { conversation: 'ask @49157001 or a@9000.example', messageContextInfo },
} satisfies Record<string, proto.IMessage>;

/** Replies to a message with a file; its quotation holds what is needed to fetch it. */
export function replyTo(stanzaId: string, participant: string | null, quotedMessage: proto.IMessage | null) {
  return {
    extendedTextMessage: {
      text: 'what is this?',
      contextInfo: {
        stanzaId,
        ...(participant === null ? {} : { participant }),
        ...(quotedMessage === null ? {} : { quotedMessage }),
      },
    },
    messageContextInfo,
  } satisfies proto.IMessage;
}

export const files = {
  photo: { imageMessage: { ...photo, caption: 'look' }, messageContextInfo },
  voiceNote: { audioMessage: voiceNote, messageContextInfo },
  sticker: { stickerMessage: { mimetype: 'image/webp', isAnimated: true }, messageContextInfo },
} satisfies Record<string, proto.IMessage>;

/** An album: what announces it, then each picture. */
export const album = {
  parent: { albumMessage: { expectedImageCount: 2, expectedVideoCount: 0 }, messageContextInfo },
  first: {
    imageMessage: { ...photo, caption: 'the garden' },
    messageContextInfo: child(AssociationType.MEDIA_ALBUM),
  },
  second: {
    associatedChildMessage: {
      message: { imageMessage: photo, messageContextInfo: child(AssociationType.MEDIA_ALBUM, 1) },
    },
  },
} satisfies Record<string, proto.IMessage>;

/** The same picture once more, in a better form. */
export const secondFiles = {
  hdPhoto: {
    associatedChildMessage: {
      message: { imageMessage: photo, messageContextInfo: child(AssociationType.HD_IMAGE_DUAL_UPLOAD) },
    },
  },
  motionPhoto: {
    associatedChildMessage: {
      message: {
        videoMessage: { ...photo, mimetype: 'video/mp4' },
        messageContextInfo: child(AssociationType.MOTION_PHOTO),
      },
    },
  },
} satisfies Record<string, proto.IMessage>;

/** Messages that are neither words nor files, with the line that stands for them. */
export const things = {
  'a poll': [{ pollCreationMessageV3: poll, messageContextInfo }, '[poll: When? — Monday / Tuesday]'],
  'a poll in a wrapper': [
    { pollCreationMessageV4: { message: { pollCreationMessageV3: poll } }, messageContextInfo },
    '[poll: When? — Monday / Tuesday]',
  ],
  'an event': [
    {
      eventMessage: {
        name: 'Picnic',
        description: 'Bring a hat',
        startTime: 1_700_000_000,
        location: { name: 'Park', degreesLatitude: 1, degreesLongitude: 2 },
      },
      messageContextInfo,
    },
    '[event: Picnic, 2023-11-14T22:13:20.000Z, Park, Bring a hat]',
  ],
  'a place': [
    { locationMessage: { degreesLatitude: 52.5, degreesLongitude: 13.25, name: 'Café', address: 'Road 1' } },
    '[location: Café, Road 1, 52.5, 13.25]',
  ],
  'a moving place': [
    {
      liveLocationMessage: {
        degreesLatitude: 52.5,
        degreesLongitude: 13.25,
        accuracyInMeters: 12,
        sequenceNumber: 1_779_000_000_001,
      },
    },
    '[live location: 52.5, 13.25]',
  ],
  contacts: [
    {
      contactsArrayMessage: {
        displayName: '2 contacts',
        contacts: [
          { displayName: 'Carl', vcard: 'BEGIN:VCARD\nTEL;type=CELL;waid=4930:+49 30 1\nEND:VCARD' },
          { displayName: 'Dora', vcard: 'BEGIN:VCARD\nEND:VCARD' },
        ],
      },
    },
    '[contacts: Carl, +49 30 1; Dora]',
  ],
  'a picture to be viewed once, without its key': [
    { viewOnceMessageV2: { message: { imageMessage: { mimetype: 'image/jpeg', viewOnce: true } } } },
    '[message to be viewed once: only the phone can open it]',
  ],
  'a voice note to be heard once': [
    { viewOnceMessageV2Extension: { message: { audioMessage: { ptt: true, viewOnce: true } } } },
    '[message to be viewed once: only the phone can open it]',
  ],
  'a payment request': [
    { requestPaymentMessage: { currencyCodeIso4217: 'BRL', amount1000: 1000 }, messageContextInfo },
    '[payment request]',
  ],
  'a pack of stickers': [{ stickerPackMessage: { name: 'Cats' }, messageContextInfo }, '[pack of stickers]'],
  'an invitation to a channel': [
    { newsletterAdminInviteMessage: { newsletterJid: '1@newsletter', newsletterName: 'News' } },
    '[invitation to a channel]',
  ],
  'the answer of an assistant, which is not read': [
    { richResponseMessage: { submessages: [] } },
    '[message of a kind that I cannot read]',
  ],
} satisfies Record<string, [proto.IMessage, string]>;

/** What nobody sees in a chat. */
export const unseen = {
  'a pin': { pinInChatMessage: { key: { id: 'M0' }, type: 1 }, messageContextInfo },
  'a message that is kept': { keepInChatMessage: { key: { id: 'M0' }, keepType: 1 }, messageContextInfo },
  'the end of a call': { callLogMesssage: { isVideo: false, durationSecs: 3 } },
  'an answer to an event': { encEventResponseMessage: { encIv: Buffer.alloc(12) }, messageContextInfo },
  'nothing but what stands beside': { messageContextInfo },
} satisfies Record<string, proto.IMessage>;
