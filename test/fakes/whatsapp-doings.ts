/** What people do on the fake WhatsApp: say, change, take back, react, read; the owner too, on the phone itself. */
import { randomBytes } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import { proto } from '@whiskeysockets/baileys';
import { MESSAGE_EDIT, REVOKE } from './whatsapp-changes.js';
import { contentOf, type Quotable } from './whatsapp-contents.js';
import { sealedEdit } from './whatsapp-edits.js';
import { sealFile } from './whatsapp-files.js';
import {
  type Chat,
  isGroup,
  membershipLetter,
  messageLetter,
  receiptLetter,
  retryLetter,
} from './whatsapp-mail.js';
import type { Companion } from './whatsapp-pairing.js';
import { addressOf, type People, type Person } from './whatsapp-people.js';
import type { Letter, Post } from './whatsapp-post.js';
import { historyOf, restrictionLetter, tokenLetter } from './whatsapp-tokens.js';
import type { FakeWhatsApp, Group, Peer, Said, Saying, SentMessage } from './whatsapp-words.js';

const { HISTORY_SYNC_NOTIFICATION: HISTORY_SYNC } = proto.Message.ProtocolMessage.Type;

export interface Stagehands {
  people: People;
  post: Post;
  put(bytes: Buffer): string;
  companion(): Companion;
  /** A message of ours. */
  ours(id: string): SentMessage | undefined;
  askedAgain(id: string): number;
  /** How the next message is delivered twice, if it is. */
  takeDoubling(): 'id' | 'ciphertext' | null;
}

type Doings = Pick<
  FakeWhatsApp,
  | 'say'
  | 'sayAlbum'
  | 'edit'
  | 'sealedEdit'
  | 'revoke'
  | 'react'
  | 'ownPhoneSays'
  | 'read'
  | 'removeFromGroup'
  | 'addToGroup'
  | 'giveToken'
  | 'syncHistory'
> & { requestRetry(sent: SentMessage, by?: Peer): void; tellRestriction(until: number | null): void };

interface Place {
  key: proto.IMessageKey;
  chat: Chat;
  from: Person;
  secret: Uint8Array;
}

export function makeDoings(hands: Stagehands): Doings {
  const { people, post } = hands;
  const quotables = new Map<string, Quotable>();
  const chats = new Map<string, { chat: Chat; from: Person; secret: Uint8Array }>();

  const newId = () => `3A${randomBytes(9).toString('hex').toUpperCase()}`;
  const formIn = (chat: Chat) => (chat === 'self' ? 'lid' : isGroup(chat) ? chat.addressing : chat.form);

  function dispatch(letter: Letter, saying?: Pick<Saying, 'offline'>): void {
    post.send(saying?.offline === true ? { ...letter, late: true } : letter);
  }

  function utter(from: Person, chat: Chat, saying: Omit<Saying, 'from' | 'in'>): Said {
    const id = saying.id ?? newId();
    const form = formIn(chat);
    const mentioned = saying.mention === true ? [people.own] : (saying.mention ?? []).map(people.of);
    const secret = randomBytes(32);
    const content = async () => {
      const made = await contentOf(saying, {
        secret,
        album: saying.album === undefined ? null : keyIn(chat, saying.album),
        put: hands.put,
        quotable(quoted) {
          const ours = hands.ours(quoted);
          return ours
            ? { author: addressOf(people.own, form), content: ours.content }
            : quotables.get(quoted);
        },
        mentioned: mentioned.map((person) => addressOf(person, form)),
      });
      quotables.set(id, { author: addressOf(from, form), content: made });
      return made;
    };
    chats.set(id, { chat, from, secret });
    if (!isGroup(chat)) from.met = true;
    if (chat !== 'self' && !isGroup(chat)) chat.met = true;
    const spoilt = from.spoils !== 'never';
    if (from.spoils === 'once') from.spoils = 'never';
    const at = saying.at ?? Date.now();
    const { viewOnce: unseen = false, later = false } = saying;
    const mailing = { id, from, chat, content, at, spoilt, unseen, later };
    const letter = () => messageLetter(mailing, people, hands.companion);
    const doubling = hands.takeDoubling();
    dispatch(doubling === 'ciphertext' ? { ...letter(), doubled: true } : letter(), saying);
    if (doubling === 'id') dispatch(letter(), saying);
    return { id, from: from.peer, in: isGroup(chat) ? chat : null, text: saying.text ?? '' };
  }

  /** As its writer's phone knows it. */
  function keyIn(chat: Chat, id: string): proto.IMessageKey {
    return { remoteJid: isGroup(chat) ? chat.id : addressOf(people.own, formIn(chat)), fromMe: true, id };
  }

  /** The owner can change on the phone what the gateway sent. */
  function ofOurs(id: string): Omit<Place, 'key'> {
    const ours = hands.ours(id);
    if (ours === undefined) throw new Error(`nobody said ${id}`);
    const { chat } = ours;
    const where = chat === null ? 'self' : 'members' in chat ? chat : people.of(chat);
    return { chat: where, from: people.own, secret: randomBytes(32) };
  }

  /** A change of what was said: one more message, that says so. */
  function change(id: string, edit: '1' | '7', content: (place: Place) => proto.IMessage): void {
    const said = chats.get(id) ?? ofOurs(id);
    const { chat, from } = said;
    const made = content({ ...said, key: keyIn(chat, id) });
    const mailing = { id: newId(), from, chat, content: async () => made, at: Date.now(), edit };
    dispatch(messageLetter(mailing, people, hands.companion));
  }

  /** Who tells us about a message of ours, if nobody else is named. */
  function readerOf({ chat }: SentMessage, by: Peer | undefined): { person: Person; group: Group | null } {
    const group = chat !== null && 'members' in chat ? chat : null;
    const peer = by ?? (group === null ? (chat as Peer | null) : group.members[0]);
    return { person: peer ? people.of(peer) : people.own, group };
  }

  /** By the group's first member; the gateway is told while it is in the group, and as it leaves it. */
  function membership(group: Group, what: 'add' | 'remove', who: Person): void {
    const circle = people.circle(group.id);
    if (circle === null) throw new Error(`there is no group ${group.id}`);
    const told = circle.includesUs || who === people.own;
    const [first = people.own.peer] = group.members;
    if (who === people.own) circle.includesUs = what === 'add';
    else {
      const others = group.members.filter((member) => member !== who.peer);
      group.members = what === 'add' ? [...others, who.peer] : others;
    }
    if (told) dispatch(membershipLetter(group, what, who, people.of(first), newId()));
  }

  return {
    say: ({ from, in: group, ...saying }) => {
      const person = people.of(from);
      return utter(person, group ?? person, saying);
    },
    ownPhoneSays: ({ to, ...saying }) =>
      utter(people.own, to === 'self' ? to : 'members' in to ? to : people.of(to), saying),

    sayAlbum({ images, text, mention, from, in: group, ...said }) {
      const person = people.of(from);
      const chat = group ?? person;
      const albumMessage = { expectedImageCount: images.length, expectedVideoCount: 0 };
      const parent = utter(person, chat, { content: { albumMessage } });
      const first = { ...(text ? { text } : {}), ...(mention ? { mention } : {}), ...said };
      return images.map((image, at) =>
        utter(person, chat, { image, album: parent.id, ...(at === 0 ? first : {}) }),
      );
    },
    edit: (said, text, how) =>
      change(said.id, '1', ({ key, from, chat, secret }) => {
        const at = Date.now();
        if (how === 'plain') {
          const protocolMessage = {
            ...{ key, type: MESSAGE_EDIT, timestampMs: at },
            editedMessage: { conversation: text },
          };
          return { editedMessage: { message: { protocolMessage } } };
        }
        const [author, editor] = (how?.forms ?? [formIn(chat), formIn(chat)]).map((form) =>
          addressOf(from, form),
        );
        return sealedEdit({ key, secret, author: author ?? '', editor: editor ?? '', text, at });
      }),
    sealedEdit(said, text, by) {
      const { chat, secret } = chats.get(said.id) ?? { chat: people.of(by), secret: randomBytes(32) };
      const address = addressOf(people.of(by), formIn(chat));
      const key = keyIn(chat, said.id);
      return sealedEdit({ key, secret, author: address, editor: address, text, at: Date.now() });
    },
    revoke: (said) => change(said.id, '7', ({ key }) => ({ protocolMessage: { key, type: REVOKE } })),

    react(peer, on, emoji) {
      const person = people.of(peer);
      const ours = 'content' in on;
      const group = ours ? readerOf(on, peer).group : on.in;
      const chat: Chat = group ?? person;
      const form = formIn(chat);
      const author = ours ? people.own : people.of(on.from);
      const key = {
        id: on.id,
        remoteJid: group?.id ?? addressOf(people.own, form),
        fromMe: author === person,
        ...(group === null ? {} : { participant: addressOf(author, form) }),
      };
      const made = { reactionMessage: { key, text: emoji, senderTimestampMs: Date.now() } };
      const mailing = { id: newId(), from: person, chat, content: async () => made, at: Date.now() };
      dispatch(messageLetter(mailing, people, hands.companion));
    },

    read(sent, by) {
      const { person, group } = readerOf(sent, by);
      dispatch(receiptLetter({ id: sent.id, chat: sent.to, type: 'read', at: Date.now() }, person, group));
    },
    requestRetry(sent, by) {
      const { person, group } = readerOf(sent, by);
      const count = hands.askedAgain(sent.id);
      dispatch(retryLetter({ id: sent.id, chat: sent.to, count, at: Date.now() }, person, group));
    },

    giveToken: (peer) => dispatch(tokenLetter(people.of(peer), newId())),
    tellRestriction: (until) => dispatch(restrictionLetter(until, newId())),
    syncHistory(told) {
      const content = async (): Promise<proto.IMessage> => {
        const history = proto.HistorySync.encode(historyOf(told, people)).finish();
        const { bytes, ...keys } = await sealFile(deflateSync(history), 'md-msg-hist');
        const { INITIAL_BOOTSTRAP: syncType } = proto.Message.HistorySyncType;
        const historySyncNotification = { ...keys, directPath: hands.put(bytes), syncType, chunkOrder: 1 };
        return { protocolMessage: { type: HISTORY_SYNC, historySyncNotification } };
      };
      const mailing = {
        id: newId(),
        from: people.own,
        chat: 'self' as const,
        content,
        at: Date.now(),
        toDevice: true,
      };
      dispatch(messageLetter(mailing, people, hands.companion));
    },

    removeFromGroup: (group, peer) => membership(group, 'remove', peer ? people.of(peer) : people.own),
    addToGroup: (group, peer) => membership(group, 'add', peer ? people.of(peer) : people.own),
  };
}
