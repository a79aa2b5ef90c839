/** What people do, as letters to the gateway: messages to it or to a group, receipts, news of a group. */
import type { BinaryNode, proto } from '@whiskeysockets/baileys';
import { seconds, stanza } from './whatsapp-nodes.js';
import { type Companion, keyNumber } from './whatsapp-pairing.js';
import { addressOf, type People, type Person } from './whatsapp-people.js';
import type { Letter } from './whatsapp-post.js';
import type { KeyBundle, Sealed } from './whatsapp-signal.js';
import type { Group } from './whatsapp-words.js';

/** Where a message stands: in a group, in a person's chat with us, in our chat with ourselves. */
export type Chat = Group | Person | 'self';

export interface Mailing {
  id: string;
  from: Person;
  chat: Chat;
  /** Made when it is sealed: what it quotes may still be on its way. */
  content: () => Promise<proto.IMessage>;
  /** ms since 1970 */
  at: number;
  /** What the server is told of a content it cannot read: the kind of a change. */
  edit?: '1' | '7' | undefined;
  /** It arrives unreadable. */
  spoilt?: boolean;
  /** To be seen once: a linked device gets `<unavailable type="view_once"/>` instead (rc14, decode-wa-message.js). */
  unseen?: boolean;
  /** From the own phone to its linked devices, and nowhere in a chat. */
  toDevice?: boolean;
  /** It says something for which the library's protocol has no field. */
  later?: boolean;
}

/** A message in field 2000. */
const LATER = Buffer.from('827d020801', 'hex');

export function isGroup(chat: Chat): chat is Group {
  return chat !== 'self' && 'members' in chat;
}

/** A message of a person, or of the own phone. */
export function messageLetter(mailing: Mailing, people: People, companion: () => Companion): Letter {
  const { id, from, chat, at, edit, spoilt = false } = mailing;
  const address = envelope(mailing, people);
  let content: proto.IMessage | null = null;

  /** Keys are given away once. */
  const bundle = (): KeyBundle => {
    const { registrationId, identity, signed, once } = companion();
    return { registrationId, identity, signed, once: once.shift() ?? null };
  };

  async function seal(again: number): Promise<BinaryNode> {
    if (mailing.unseen) {
      const attributes = { ...address, id, type: 'media', t: seconds(at), notify: from.peer.name };
      return stanza('message', attributes, [stanza('unavailable', { type: 'view_once' })]);
    }
    content ??= await mailing.content();
    if (again > 0) await from.phone.forget();
    const count = again > 0 ? String(again) : undefined;
    const sealed = isGroup(chat)
      ? await sealForGroup(chat, from, content, bundle, again)
      : [
          await from.phone.seal(
            from === people.own && !mailing.toDevice ? ownContent(chat, content) : content,
            bundle,
            mailing.later ? LATER : undefined,
          ),
        ];
    const unreadable = spoilt && (again === 0 || from.spoils === 'always');
    const encrypted = sealed.map(({ type, bytes }) =>
      stanza('enc', { v: '2', type, count }, unreadable ? spoil(bytes) : bytes),
    );
    const type = kindOf(content);
    return stanza(
      'message',
      { ...address, id, type, t: seconds(at), edit, notify: from.peer.name },
      encrypted,
    );
  }

  /** What stands beside a message is read outside the wrapper (tulir/whatsmeow, `storeMessageSecret`). */
  function ownContent(where: Chat, said: proto.IMessage): proto.IMessage {
    const destinationJid =
      where === 'self' || isGroup(where) ? people.own.peer.lid : addressOf(where, where.form);
    const { messageContextInfo, ...message } = said;
    return {
      deviceSentMessage: { destinationJid, message },
      ...(messageContextInfo && { messageContextInfo }),
    };
  }

  return { id, class: 'message', seal };
}

async function sealForGroup(
  group: Group,
  from: Person,
  content: proto.IMessage,
  bundle: () => KeyBundle,
  again: number,
): Promise<Sealed[]> {
  const { sealed, key } = await from.phone.sealForGroup(group.id, content, again > 0);
  if (key === null) return [sealed];
  const senderKeyDistributionMessage = {
    groupId: group.id,
    axolotlSenderKeyDistributionMessage: key,
  };
  // Asked for again, it comes to this one device alone.
  if (again > 0) return [await from.phone.seal({ ...content, senderKeyDistributionMessage }, bundle)];
  return [await from.phone.seal({ senderKeyDistributionMessage }, bundle), sealed];
}

/** From whom it is and where it stands, with the other form of address where that is not a secret. */
function envelope({ from, chat, toDevice }: Mailing, people: People): Record<string, string | undefined> {
  const { pn, lid } = from.peer;
  if (toDevice) return { from: pn, category: 'peer', push_priority: 'high' };
  if (isGroup(chat)) {
    const participant = addressOf(from, chat.addressing);
    return {
      from: chat.id,
      participant,
      addressing_mode: chat.addressing,
      ...(participant === pn ? { participant_lid: lid } : from.hidden ? {} : { participant_pn: pn }),
    };
  }
  if (from === people.own) {
    const other = chat === 'self' ? people.own : chat;
    const recipient = addressOf(other, other.form);
    return {
      from: recipient.endsWith('@lid') ? lid : pn,
      recipient,
      ...(recipient === other.peer.pn
        ? { peer_recipient_lid: other.peer.lid }
        : other.hidden
          ? {}
          : { peer_recipient_pn: other.peer.pn }),
    };
  }
  const address = addressOf(from, from.form);
  return {
    from: address,
    ...(address === pn ? { sender_lid: lid } : from.hidden ? {} : { sender_pn: pn }),
  };
}

function kindOf(content: proto.IMessage): string {
  if (content.reactionMessage) return 'reaction';
  const texts = [
    'conversation',
    'extendedTextMessage',
    'protocolMessage',
    'editedMessage',
    'secretEncryptedMessage',
    'locationMessage',
  ];
  return texts.some((field) => field in content) ? 'text' : 'media';
}

/** In every type of sealed message, the tenth byte from the end is one that is authenticated. */
function spoil(bytes: Buffer): Buffer {
  const spoilt = Buffer.from(bytes);
  const at = spoilt.length - 10;
  spoilt.writeUInt8(spoilt.readUInt8(at) ^ 0xff, at);
  return spoilt;
}

/** Of a person, about a message of ours; `chat` is how we addressed it. */
export function receiptLetter(
  about: { id: string; chat: string; type?: 'read' | undefined; at: number },
  by: Person,
  group: Group | null,
): Letter {
  const attributes = {
    id: about.id,
    from: group?.id ?? about.chat,
    participant: group === null ? undefined : addressOf(by, group.addressing),
    type: about.type,
    t: seconds(about.at),
  };
  return { id: about.id, class: 'receipt', seal: async () => stanza('receipt', attributes) };
}

/** A person's phone could not read a message of ours. */
export function retryLetter(
  about: { id: string; chat: string; count: number; at: number },
  by: Person,
  group: Group | null,
): Letter {
  const { id, count, at } = about;
  const seal = async () => {
    const { registrationId } = await by.phone.bundle();
    return stanza(
      'receipt',
      {
        id,
        from: group?.id ?? about.chat,
        participant: group === null ? undefined : addressOf(by, group.addressing),
        type: 'retry',
        t: seconds(at),
      },
      [
        stanza('retry', { count: String(count), id, t: seconds(at), v: '1' }),
        stanza('registration', {}, keyNumber(registrationId, 4)),
      ],
    );
  };
  return { id, class: 'receipt', seal };
}

/** Somebody, or our account, was taken into a group or out of it. */
export function membershipLetter(
  group: Group,
  what: 'add' | 'remove',
  who: Person,
  by: Person,
  id: string,
): Letter {
  const attributes = {
    id,
    from: group.id,
    type: 'w:gp2',
    t: seconds(Date.now()),
    participant: addressOf(by, group.addressing),
    notify: by.peer.name,
  };
  const participant = stanza('participant', { jid: addressOf(who, group.addressing) });
  const seal = async () => stanza('notification', attributes, [stanza(what, {}, [participant])]);
  return { id, class: 'notification', seal };
}
