/**
 * Takes in messages. A decrypted message is stored before the library goes on and acknowledges it (see
 * `signal.ts`). A message that the library emits another way is too late for that, and is stored at once.
 */
import {
  type BinaryNode,
  decodeMessageNode,
  proto,
  unpadRandomMax16,
  type WAMessage,
  type WAMessageKey,
} from '@whiskeysockets/baileys';
import { LRUCache } from 'lru-cache';
import type { Receive } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { InboundEvent } from '../../core/message.js';
import { bytesIn, contentOf, countIn, labelOf, saidIn } from './content.js';
import { accountOf } from './credentials.js';
import type { Directory, GroupDirectory, Secrets } from './directory.js';
import { isGroup, isList, isOwnId, personOf, plainJid, userOf } from './ids.js';
import { inbound, type KnownContext, type OwnAccount, openEdit, originOf, sentAtOf } from './inbound.js';

/** How many taken messages are remembered. */
const MOST_TAKEN = 2_000;
/** Late messages older than the cursor are history; redelivered ones keep their old time, hence this. */
const LATE_BY_MS = 600_000;

export interface Login {
  me(): OwnAccount | null;
  mark: string;
  /** Everything up to here is stored or history, ms. */
  since: number;
}

/** Reads values of the library from the store. */
type Lookup = (names: string[]) => Promise<Record<string, string>>;

export type WhatsAppIntake = ReturnType<typeof createIntake>;

interface IntakeParts {
  directory: Directory;
  groups: GroupDirectory;
  secrets: Secrets;
  markRead(keys: WAMessageKey[]): Promise<void>;
  clock: Clock;
  log: Log;
}

export function createIntake({ directory, groups, secrets, markRead, clock, log }: IntakeParts) {
  const taken = new LRUCache<string, true>({ max: MOST_TAKEN });
  const taking = new Set<Promise<void>>();
  let receive: Receive = () => Promise.reject(new Error('the intake has not started'));
  let newest = 0;
  const receipts = createReadReceipts(markRead, clock, log);

  async function take(message: WAMessage, isLate: boolean, to: Login): Promise<void> {
    const done = takeIn(message, isLate, to);
    taking.add(done);
    await done.finally(() => taking.delete(done));
  }

  async function takeIn(message: WAMessage, isLate: boolean, to: Login): Promise<void> {
    const me = to.me();
    const sentAt = sentAtOf(message);
    if (me === null || (isLate && sentAt < to.since - LATE_BY_MS)) return;
    const { titleOf, manages } = groups;
    const known: KnownContext = {
      me,
      sentByUs: (id) => isOwnId(to.mark, id),
      ...directory,
      titleOf,
      manages,
    };
    const event = inbound(await readable(message, known, secrets, log), known);
    if (event === null) return;
    remember(directory, event, message);
    // A sender's clock must not move the cursor into the future: messages until then would be history.
    const cursor = Math.max(newest, to.since, Math.min(sentAt, clock.now()));
    const batch = { channel: 'whatsapp', account: accountOf(me), events: [event], cursor: String(cursor) };
    const reception = await receive(isLate ? { ...batch, piledUp: true } : batch);
    newest = cursor;
    if (event.kind !== 'message') return;
    const { platformMessageId: id, sender } = event;
    if (reception.rejected.some(({ platformMessageId }) => platformMessageId === id)) return;
    const bytes = bytesIn(contentOf(message.message)?.messageContextInfo?.messageSecret);
    if (bytes !== undefined) await secrets.keep(id, { author: sender.address, bytes });
    if (!sender.self) receipts.add(message.key);
  }

  return {
    start(to: Receive): void {
      receive = to;
    },

    /** A decrypted message, in the stanza it came in. */
    async decrypted(stanza: BinaryNode, plaintext: Uint8Array, to: Login, lookup: Lookup): Promise<void> {
      const me = to.me();
      const message = me && messageIn(stanza, plaintext, me);
      if (!message) return;
      await lookUpSender(directory, message, lookup);
      await take(message, Boolean(stanza.attrs.offline), to);
      taken.set(nameOf(message), true);
    },

    /** A view-once message: linked devices only learn that it exists. */
    async withheld(stanza: BinaryNode, to: Login): Promise<void> {
      const me = to.me();
      if (me === null) return;
      const { fullMessage } = decodeMessageNode(stanza, me.phone, me.lid ?? '');
      await take({ ...fullMessage, message: WITHHELD }, Boolean(stanza.attrs.offline), to);
    },

    /** A message as the library emits it. */
    async handedOut(message: WAMessage, isLate: boolean, to: Login): Promise<void> {
      if (!taken.get(nameOf(message))) await take(message, isLate, to);
    },
    /** Resolves when nothing is being stored. Read receipts that still wait are dropped. */
    async stop(): Promise<void> {
      await Promise.allSettled(taking);
      receipts.stop();
    },
  };
}

/** Decrypts an edit with the secret of its message, if possible. */
async function readable(
  message: WAMessage,
  known: KnownContext,
  secrets: Secrets,
  log: Log,
): Promise<WAMessage> {
  const sealed = contentOf(message.message)?.secretEncryptedMessage;
  const origin = sealed && originOf(message, known);
  if (!sealed || !origin) return message;
  const edit = openEdit(sealed, origin.person, await secrets.of(sealed.targetMessageKey?.id ?? ''));
  if (edit !== null) return { ...message, message: edit };
  const fields = { channel: 'whatsapp', chat: origin.chat.address };
  log.debug(fields, 'an edit could not be decrypted: its message came over an hour ago, or never');
  return message;
}

function nameOf({ key }: WAMessage): string {
  return `${plainJid(key.remoteJid)} ${key.id}`;
}

function remember(directory: Directory, event: InboundEvent, message: WAMessage): void {
  if (event.kind === 'deleted') directory.noteGone(event.platformMessageIds);
  if (event.kind !== 'message') return;
  const { chat, sender, platformMessageId: id } = event;
  const chats = [chat.address, chat.otherAddress].filter((address) => address !== undefined);
  const content = contentOf(message.message);
  const text = event.text || (content ? labelOf(content) : '');
  directory.notePerson(personOf(sender.address, sender.otherAddress), sender.name);
  // A message to a broadcast list is answered in the chat with its sender.
  const isListed = isList(message.key.remoteJid ?? '');
  const key = isListed ? { remoteJid: chat.address, fromMe: false, id } : message.key;
  directory.noteMessage(chats, { key, text, author: sender.address });
  const context = (content && saidIn(content))?.context;
  directory.noteLifetime(chats, countIn(context?.expiration) ?? 0);
}

/** Looks up the sender's other address, if the message lacks it. */
async function lookUpSender(directory: Directory, { key }: WAMessage, lookup: Lookup): Promise<void> {
  const jid = plainJid(key.participant || key.remoteJid);
  if (jid === null || isGroup(jid) || directory.otherForm(jid) !== null) return;
  if (plainJid(key.participantAlt ?? key.remoteJidAlt) !== null) return;
  const isLid = jid.endsWith('@lid');
  const name = isLid ? `${userOf(jid)}_reverse` : userOf(jid);
  const user = (await lookup([name]))[name];
  if (user !== undefined)
    directory.notePerson(personOf(jid, isLid ? `${user}@s.whatsapp.net` : `${user}@lid`));
}

/** A decrypted message in the library's form; null if unreadable: the library requests it again. */
function messageIn(stanza: BinaryNode, plaintext: Uint8Array, me: OwnAccount): WAMessage | null {
  try {
    const { fullMessage } = decodeMessageNode(stanza, me.phone, me.lid ?? '');
    const bytes = unpadRandomMax16(plaintext);
    const said = outOfOwnWrapper(proto.Message.decode(bytes));
    const message = isOfLaterKind(said, bytes, stanza) ? { ...said, ...OF_LATER_KIND } : said;
    return { ...fullMessage, key: { ...fullMessage.key, ...otherAddressOf(stanza, fullMessage) }, message };
  } catch {
    return null;
  }
}

/** Messages from our own phone have one more wrapper; the message's secret may be inside or next to it. */
function outOfOwnWrapper({ deviceSentMessage, ...outside }: proto.IMessage): proto.IMessage {
  const said = deviceSentMessage?.message;
  if (!said) return outside;
  const messageContextInfo = said.messageContextInfo ?? outside.messageContextInfo;
  return messageContextInfo ? { ...said, messageContextInfo } : said;
}

const WITHHELD = { viewOnceMessage: { message: { imageMessage: { viewOnce: true } } } };

/** Placeholder for content newer than the library. */
const OF_LATER_KIND = { messageOfLaterKind: {} };

/** Whether people see content unknown to the library: all that it could read is empty. */
function isOfLaterKind(said: proto.IMessage, bytes: Uint8Array, { attrs }: BinaryNode): boolean {
  const isSeen = attrs.category !== 'peer' && attrs.type !== 'reaction';
  const isEmpty = Object.keys(said).every((kind) => kind === 'messageContextInfo');
  return isSeen && isEmpty && proto.Message.encode(said).finish().length < bytes.length;
}

/** In messages of our own account, the library mistakes the sender's other address for the chat's. */
function otherAddressOf({ attrs }: BinaryNode, { key }: WAMessage): { remoteJidAlt?: string } {
  if (!key.fromMe || !attrs.recipient) return {};
  const other =
    attrs.recipient_pn ?? attrs.peer_recipient_pn ?? attrs.recipient_lid ?? attrs.peer_recipient_lid;
  return other === undefined ? {} : { remoteJidAlt: other };
}

/** Read receipts within this time are sent together. */
const GATHER_MS = 500;

/** Read receipts (blue ticks) for messages that were let in; best effort. */
function createReadReceipts(markRead: IntakeParts['markRead'], clock: Clock, log: Log) {
  let keys: WAMessageKey[] = [];
  let cancel: (() => void) | null = null;

  function flush(): void {
    cancel = null;
    markRead(keys).catch((error) =>
      log.debug({ channel: 'whatsapp', reason: describe(error) }, 'sending read receipts failed'),
    );
    keys = [];
  }

  return {
    add(key: WAMessageKey): void {
      keys.push(key);
      cancel ??= clock.after(GATHER_MS, flush);
    },
    stop: () => cancel?.(),
  };
}
