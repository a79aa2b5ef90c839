/**
 * What of WhatsApp's messages we read. They are other people's words, and the format grows: a field of another
 * form than expected counts as absent.
 */
import { flag, list, type Read, record, text } from '../read.js';

type Result<Reader> = Reader extends Read<infer T> ? T : never;

const bytes: Read<Uint8Array> = (value) =>
  value instanceof Uint8Array && value.length > 0 ? value : undefined;

const float: Read<number> = (value) =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;

/** Whole numbers come as numbers, as text, or as a pair of halves. */
const count: Read<number> = (value) => {
  const number =
    typeof value === 'object' && value !== null && 'low' in value && 'high' in value
      ? Number(value.high) * 2 ** 32 + (Number(value.low) >>> 0)
      : typeof value === 'string' && /^\d{1,16}$/.test(value)
        ? Number(value)
        : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
};

/** Read later, with the same reader: messages hold messages. */
const nested: Read<object> = (value) => (typeof value === 'object' && value !== null ? value : undefined);

const context = record(
  {},
  {
    stanzaId: text,
    participant: text,
    quotedMessage: nested,
    mentionedJid: list(text),
    expiration: count,
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
    directPath: text,
    url: text,
    mediaKey: bytes,
    fileSha256: bytes,
  },
);

const place = record(
  {},
  { ...about, degreesLatitude: float, degreesLongitude: float, name: text, address: text, caption: text },
);
const contact = record({}, { ...about, displayName: text, vcard: text });
const poll = record({}, { ...about, name: text, options: list(record({}, { optionName: text })) });
const messageKey = record({ id: text }, { fromMe: flag, participant: text });

/** A message's content, out of its wrappers. What is not here is nothing to us. */
export const readContent = record(
  {},
  {
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
    protocolMessage: record({}, { type: count, key: messageKey, editedMessage: nested, timestampMs: count }),
  },
);

/** A message with what stands on its envelope. */
export const readMessage = record(
  {
    key: record(
      { remoteJid: text, id: text },
      { remoteJidAlt: text, fromMe: flag, participant: text, participantAlt: text },
    ),
    message: nested,
  },
  { messageTimestamp: count, pushName: text, verifiedBizName: text },
);

export type Content = Result<typeof readContent>;
export type Envelope = Result<typeof readMessage>;
export type Media = Result<typeof media>;
export type Place = Result<typeof place>;
export type Contact = Result<typeof contact>;
export type Context = Result<typeof context>;

export const NO_CONTEXT: Context = {
  stanzaId: undefined,
  participant: undefined,
  quotedMessage: undefined,
  mentionedJid: undefined,
  expiration: undefined,
};
