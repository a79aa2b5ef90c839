/**
 * Takes in messages. What was decrypted is stored before the library goes on and WhatsApp hears that it arrived (see
 * `signal.ts`). What the library hands out in other ways comes too late for that, and is stored at once.
 */
import {
  type BinaryNode,
  decodeMessageNode,
  proto,
  unpadRandomMax16,
  type WAMessage,
  type WAMessageKey,
} from '@whiskeysockets/baileys';
import type { Receive, Reception } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { InboundBatch, InboundEvent } from '../../core/message.js';
import { bounded } from '../kit/bounded.js';
import { type Context, contentOf, labelOf, readMessage, saidIn } from './content.js';
import { accountOf } from './credentials.js';
import { isGroup, isList, isOwnId, personOf, plainJid, userOf } from './ids.js';
import { inbound, type Known, type Me, openEdit, originOf } from './inbound.js';
import type { Cache, Groups, Secrets } from './lookup.js';

/** How many messages are remembered as taken in. */
const MOST_TAKEN = 2_000;
/**
 * A message that comes late and is older than what is stored already is history. But one that could not be decrypted is
 * asked for again, and comes with its old time: so there is some tolerance.
 */
const LATE_BY_MS = 600_000;

export interface IntakeParts {
  cache: Cache;
  groups: Groups;
  receipts: ReadReceipts;
  handIn: HandIn;
  secrets: Secrets;
  clock: Clock;
  log: Log;
}

/** The account that one connection is logged in with. */
export interface Login {
  me(): Me | null;
  mark: string;
  /** Up to when everything is stored or history, ms. */
  since: number;
}

/** Reads a value that the library keeps in the store. */
type Lookup = (names: string[]) => Promise<Record<string, string>>;

export interface Intake {
  /** A message as it was decrypted, in the stanza it came in. */
  decrypted(stanza: BinaryNode, plaintext: Uint8Array, to: Login, lookup: Lookup): Promise<void>;
  /** A message that is to be viewed once, of which linked devices hear only that there is one. */
  withheld(stanza: BinaryNode, to: Login): Promise<void>;
  /** A message as the library hands it out. */
  handedOut(message: WAMessage, late: boolean, to: Login): Promise<void>;
  /** Resolves when nothing is being stored. */
  idle(): Promise<void>;
}

export function createIntake({ cache, groups, receipts, handIn, secrets, clock, log }: IntakeParts): Intake {
  const taken = bounded<string, true>(MOST_TAKEN);
  const taking = new Set<Promise<void>>();
  let newest = 0;
  let unreadableEdits = 0;

  async function take(message: WAMessage, late: boolean, to: Login): Promise<void> {
    const done = takeIn(message, late, to);
    taking.add(done);
    try {
      await done;
    } finally {
      taking.delete(done);
    }
  }

  async function takeIn(message: WAMessage, late: boolean, to: Login): Promise<void> {
    const me = to.me();
    if (me === null) return;
    const sentAt = (readMessage(message)?.messageTimestamp ?? 0) * 1000;
    if (late && sentAt < to.since - LATE_BY_MS) return;
    const known: Known = {
      me,
      sentByUs: (id) => isOwnId(to.mark, id),
      otherForm: cache.otherForm,
      nameOf: cache.nameOf,
      titleOf: groups.titleOf,
      authorOf: cache.authorOf,
      manages: groups.manages,
    };
    const event = inbound(await readable(message, known), known);
    if (event === null) return;
    remember(event, message);
    // A sender's clock must not move the cursor into the future: what comes late until then would count as history.
    const cursor = Math.max(newest, to.since, Math.min(sentAt, clock.now()));
    const reception = await handIn.store({
      account: accountOf(me),
      events: [event],
      cursor: String(cursor),
      ...(late ? { piledUp: true } : {}),
    });
    newest = cursor;
    if (event.kind !== 'message') return;
    const { platformMessageId: id, sender } = event;
    if (reception.turnedAway.some(({ platformMessageId }) => platformMessageId === id)) return;
    const bytes = contentOf(message.message)?.messageContextInfo?.messageSecret;
    if (bytes !== undefined) await secrets.keep(id, { author: sender.address, bytes });
    if (!sender.self) receipts.add(message.key);
  }

  /** An edit that is encrypted with the secret of what it changes becomes one that is not; nothing, if that fails. */
  async function readable(message: WAMessage, known: Known): Promise<WAMessage> {
    const sealed = contentOf(message.message)?.secretEncryptedMessage;
    const envelope = sealed && readMessage(message);
    const origin = envelope && originOf(envelope, known);
    if (!sealed || !origin) return message;
    const edit = openEdit(sealed, origin.person, await secrets.of(sealed.targetMessageKey.id));
    if (edit !== null) return { ...message, message: edit };
    unreadableEdits += 1;
    log.debug(
      { channel: 'whatsapp', chat: origin.chat.address, soFar: unreadableEdits },
      'an edit could not be read: its message came more than an hour ago, or never',
    );
    return message;
  }

  function remember(event: InboundEvent, message: WAMessage): void {
    if (event.kind !== 'message') return;
    const { chat, sender } = event;
    const addresses = [chat.address, chat.otherAddress];
    const content = contentOf(message.message);
    const text = event.text || (content ? labelOf(content) : '');
    cache.notePerson(personOf(sender.address, sender.otherAddress), sender.name);
    // What came through a list is answered where it is read.
    const key = isList(message.key.remoteJid ?? '')
      ? { remoteJid: chat.address, fromMe: false, id: event.platformMessageId }
      : message.key;
    cache.noteMessage(addresses, { key, text, author: sender.address });
    const context: Context | undefined = (content && saidIn(content)?.context) ?? undefined;
    cache.noteLifetime(addresses, context?.expiration ?? 0);
  }

  /** Looks up the sender's other address, where the message does not have it. */
  async function lookUp({ key }: WAMessage, lookup: Lookup): Promise<void> {
    const jid = plainJid(key.participant || key.remoteJid);
    if (jid === null || isGroup(jid) || cache.otherForm(jid) !== null) return;
    const alternative = plainJid(key.participantAlt ?? key.remoteJidAlt);
    if (alternative !== null) return;
    const name = jid.endsWith('@lid') ? `${userOf(jid)}_reverse` : userOf(jid);
    const user = (await lookup([name]))[name];
    if (user === undefined) return;
    cache.notePerson(
      personOf(jid, jid.endsWith('@lid') ? `${user}@s.whatsapp.net` : `${user}@lid`),
      undefined,
    );
  }

  return {
    async decrypted(stanza, plaintext, to, lookup) {
      const me = to.me();
      const message = me && messageIn(stanza, plaintext, me);
      if (!message) return;
      await lookUp(message, lookup);
      await take(message, Boolean(stanza.attrs.offline), to);
      taken.set(nameOfMessage(message), true);
    },

    async withheld(stanza, to) {
      const me = to.me();
      if (me === null) return;
      const { fullMessage } = decodeMessageNode(stanza, me.phone, me.lid ?? '');
      const message = { ...fullMessage, message: { viewOnceMessage: { message: WITHHELD } } };
      await take(message, Boolean(stanza.attrs.offline), to);
    },

    async handedOut(message, late, to) {
      if (taken.get(nameOfMessage(message))) return;
      await take(message, late, to);
    },

    async idle() {
      await Promise.allSettled(taking);
    },
  };
}

function nameOfMessage({ key }: WAMessage): string {
  return `${plainJid(key.remoteJid)} ${key.id}`;
}

/**
 * A message as it was decrypted, with what stands on its envelope, in the library's form. null for one that cannot be
 * read: the library notices that, too, and asks for it again.
 */
function messageIn(stanza: BinaryNode, plaintext: Uint8Array, me: Me): WAMessage | null {
  try {
    const { fullMessage } = decodeMessageNode(stanza, me.phone, me.lid ?? '');
    const bytes = unpadRandomMax16(plaintext);
    const content = proto.Message.decode(bytes);
    const said = outOfOwnWrapper(content);
    return {
      ...fullMessage,
      key: { ...fullMessage.key, ...otherAddressOf(stanza, fullMessage) },
      message: isOfLaterKind(said, bytes, stanza) ? { ...said, ...OF_LATER_KIND } : said,
    };
  } catch {
    return null;
  }
}

/** What our own phone sent is in one more wrapper; what stands beside it may be inside or outside. */
function outOfOwnWrapper({ deviceSentMessage, ...outside }: proto.IMessage): proto.IMessage {
  const said = deviceSentMessage?.message;
  if (!said) return outside;
  const messageContextInfo = said.messageContextInfo ?? outside.messageContextInfo;
  return messageContextInfo ? { ...said, messageContextInfo } : said;
}

const WITHHELD: proto.IMessage = { imageMessage: { viewOnce: true } };

/** Stands in the place of a content that is newer than the library. */
const OF_LATER_KIND = { messageOfLaterKind: {} };

/** Whether people see something of which the library knows nothing: all that it could read is empty. */
function isOfLaterKind(said: proto.IMessage, bytes: Uint8Array, { attrs }: BinaryNode): boolean {
  const isSeen = attrs.category !== 'peer' && attrs.type !== 'reaction';
  const isEmpty = Object.keys(said).every((kind) => kind === 'messageContextInfo');
  return isSeen && isEmpty && proto.Message.encode(said).finish().length < bytes.length;
}

/** In what our own account sent, the library mistakes the sender's other address for that of the chat. */
function otherAddressOf({ attrs }: BinaryNode, { key }: WAMessage): { remoteJidAlt?: string } {
  if (!key.fromMe || !attrs.recipient) return {};
  const other =
    attrs.recipient_pn ?? attrs.peer_recipient_pn ?? attrs.recipient_lid ?? attrs.peer_recipient_lid;
  return other === undefined ? {} : { remoteJidAlt: other };
}

export type HandIn = ReturnType<typeof createHandIn>;

export function createHandIn(channel: string) {
  let receive: Receive | null = null;
  return {
    /** With what `Channel.start` was given. */
    begin(to: Receive): void {
      receive = to;
    },
    /** Resolves when the batch is stored; rejects when it could not be. */
    async store(batch: Omit<InboundBatch, 'channel'>): Promise<Reception> {
      if (receive === null) throw new Error('taking in has not begun');
      return receive({ channel, ...batch });
    },
  };
}

/** Receipts for a burst of messages go together. */
const GATHER_MS = 500;

export interface ReadReceipts {
  add(key: WAMessageKey): void;
  stop(): void;
}

export function createReadReceipts(parts: {
  tell(keys: WAMessageKey[]): Promise<void>;
  clock: Clock;
  log: Log;
}): ReadReceipts {
  let keys: WAMessageKey[] = [];
  let cancel: (() => void) | null = null;

  function flush(): void {
    cancel = null;
    const read = keys;
    keys = [];
    parts
      .tell(read)
      .catch((error) =>
        parts.log.debug({ channel: 'whatsapp', reason: describe(error) }, 'read receipts were not sent'),
      );
  }

  return {
    add(key) {
      keys.push(key);
      cancel ??= parts.clock.after(GATHER_MS, flush);
    },
    stop() {
      cancel?.();
      cancel = null;
      keys = [];
    },
  };
}
