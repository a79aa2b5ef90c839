/**
 * What we read of WhatsApp's messages. A field of another form than expected counts as absent.
 */
import { decimal, flag, list, nested, type Read, type Reader, record, text } from '../kit/payload.js';

const bytes: Reader<Uint8Array> = (value) =>
  value instanceof Uint8Array && value.length > 0 ? value : undefined;

/** Whole numbers come as numbers, as text, or as a pair of halves. */
const count: Reader<number> = (value) => {
  const number = numberIn(value);
  return Number.isSafeInteger(number) && (number as number) >= 0 ? (number as number) : undefined;
};

function numberIn(value: unknown): unknown {
  if (typeof value === 'object' && value !== null && 'low' in value && 'high' in value) {
    return Number(value.high) * 2 ** 32 + (Number(value.low) >>> 0);
  }
  return typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value;
}

const context = record(
  {},
  {
    stanzaId: text,
    participant: text,
    quotedMessage: nested,
    mentionedJid: list(text),
    expiration: count,
    isForwarded: flag,
    forwardingScore: count,
  },
);

const about = { contextInfo: context };

const media = record(
  {},
  {
    ...about,
    caption: text,
    mimetype: text,
    fileName: text,
    title: text,
    fileLength: count,
    seconds: count,
    ptt: flag,
    viewOnce: flag,
    directPath: text,
    url: text,
    mediaKey: bytes,
    fileSha256: bytes,
  },
);

const place = record(
  {},
  { ...about, degreesLatitude: decimal, degreesLongitude: decimal, name: text, address: text, caption: text },
);
const contact = record({}, { ...about, displayName: text, vcard: text });
const poll = record({}, { ...about, name: text, options: list(record({}, { optionName: text })) });
const messageKey = record({ id: text }, { fromMe: flag, participant: text });
const beside = record(
  {},
  {
    messageSecret: bytes,
    messageAssociation: record({ associationType: count }, { parentMessageKey: messageKey }),
  },
);

// `nested` is read later, with the same reader: messages hold messages.
const kinds = {
  conversation: text,
  extendedTextMessage: record({}, { ...about, text }),
  imageMessage: media,
  videoMessage: media,
  ptvMessage: media,
  audioMessage: media,
  documentMessage: media,
  stickerMessage: record({}, about),
  lottieStickerMessage: record({}, {}),
  // Wrappers that the library does not know.
  groupMentionedMessage: record({ message: nested }, {}),
  botForwardedMessage: record({ message: nested }, {}),
  questionMessage: record({ message: nested }, {}),
  pollCreationMessageV4: record({ message: nested }, {}),
  locationMessage: place,
  liveLocationMessage: place,
  contactMessage: contact,
  contactsArrayMessage: record({}, { ...about, contacts: list(contact) }),
  pollCreationMessage: poll,
  pollCreationMessageV2: poll,
  pollCreationMessageV3: poll,
  pollCreationMessageV5: poll,
  eventMessage: record({}, { ...about, name: text, description: text, startTime: count, location: place }),
  groupInviteMessage: record({}, { ...about, groupName: text, caption: text }),
  productMessage: record({}, { ...about, product: record({}, { title: text }) }),
  orderMessage: record({}, { ...about, orderTitle: text, message: text }),
  buttonsResponseMessage: record({}, { ...about, selectedDisplayText: text }),
  templateButtonReplyMessage: record({}, { ...about, selectedDisplayText: text }),
  listResponseMessage: record({}, { ...about, title: text }),
  interactiveResponseMessage: record({}, { ...about, body: record({}, { text }) }),
  buttonsMessage: record({}, { ...about, contentText: text }),
  templateMessage: record({}, { ...about, hydratedTemplate: record({}, { hydratedContentText: text }) }),
  listMessage: record({}, { ...about, title: text, description: text }),
  interactiveMessage: record({}, { ...about, body: record({}, { text }) }),
  reactionMessage: record({ key: messageKey }, { text, senderTimestampMs: count }),
  messageContextInfo: beside,
  secretEncryptedMessage: record(
    { targetMessageKey: messageKey, encPayload: bytes, encIv: bytes },
    { secretEncType: count },
  ),
  protocolMessage: record({}, { type: count, key: messageKey, editedMessage: nested, timestampMs: count }),
};

const envelope = record(
  {
    key: record(
      { remoteJid: text, id: text },
      { remoteJidAlt: text, fromMe: flag, participant: text, participantAlt: text },
    ),
    message: nested,
  },
  { messageTimestamp: count, pushName: text, verifiedBizName: text },
);

/** A message's content, out of its wrappers. */
export const readContent = record({}, kinds);
/** The kinds of content that are read. */
export const READ_KINDS: ReadonlySet<string> = new Set(Object.keys(kinds));
/** A message with what stands on its envelope. */
export const readMessage = envelope;

export type Content = Read<typeof readContent>;
export type Envelope = Read<typeof envelope>;
export type Media = Read<typeof media>;
export type Place = Read<typeof place>;
export type Contact = Read<typeof contact>;
export type Context = Read<typeof context>;
