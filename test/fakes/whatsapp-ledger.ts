/** What the gateway sends to people: opened by their phones, written down once for each id, answered with receipts. */
import type { BinaryNode, proto } from '@whiskeysockets/baileys';
import { applyChange, changeIn, MESSAGE_EDIT } from './whatsapp-changes.js';
import { readContent } from './whatsapp-contents.js';
import { unsealFile } from './whatsapp-files.js';
import { bytesOf, child, children } from './whatsapp-nodes.js';
import { isOwn, type People, type Person } from './whatsapp-people.js';
import type { Sealed } from './whatsapp-signal.js';
import type { Edit, Group, Reaction, SentMessage } from './whatsapp-words.js';

/** A message of ours that was taken. */
export interface Taken {
  id: string;
  /** As it was addressed. */
  to: string;
  group: Group | null;
  /** Those whose phones could read it, and those who could not. */
  readers: Person[];
  puzzled: Person[];
}

export interface Ledger {
  sent: SentMessage[];
  reactions: Reaction[];
  edits: Edit[];
  /** Takes a stanza `<message>`; null where it is nothing that people see. */
  take(node: BinaryNode): Promise<Taken | null>;
  /** How often a phone asked for a message again; one more. */
  askedAgain(id: string): number;
  messageOf(id: string): SentMessage | undefined;
}

export function makeLedger(
  people: People,
  cdn: { at(path: string): Buffer | null },
  complain: (what: string) => void,
): Ledger {
  const sent: SentMessage[] = [];
  const reactions: Reaction[] = [];
  const edits: Edit[] = [];
  /** By id, also of those that nobody could read yet. */
  const times = new Map<string, number>();
  /** When each was taken first: a phone keeps the place of a message that it has to ask for again. */
  const firstAt = new Map<string, number>();
  const retries = new Map<string, number>();
  /** The changes that phones have seen, by id: another with the same is the same. */
  const changes = new Set<string>();
  let before: Promise<unknown> = Promise.resolve();

  function chatAt(to: string): SentMessage['chat'] {
    const person = people.at(to);
    return people.circle(to)?.group ?? (person === null || isOwn(people, person) ? null : person.peer);
  }

  async function tryTo(person: Person, id: string, open: () => Promise<proto.IMessage>) {
    try {
      return await open();
    } catch (error) {
      complain(`${person.peer.name} could not read ${id}: ${String(error)}`);
      return null;
    }
  }

  /** What each phone was sent for itself; then, in a group, what all were sent. */
  async function open(node: BinaryNode, group: Group | null) {
    const id = node.attrs.id ?? '';
    const readers: Person[] = [];
    const puzzled: Person[] = [];
    let content: proto.IMessage | null = null;

    const personally = [
      ...children(child(node, 'participants'), 'to').map((to) => ({
        to: to.attrs.jid,
        enc: child(to, 'enc'),
      })),
      ...children(node, 'enc').map((enc) => ({ to: node.attrs.participant ?? node.attrs.to, enc })),
    ];
    for (const { to = '', enc } of personally) {
      const sealed = sealedIn(enc);
      const person = people.at(to);
      if (sealed === null || sealed.type === 'skmsg' || person === null) continue;
      const opened = await tryTo(person, id, () => person.phone.unseal(sealed));
      if (opened === null) {
        puzzled.push(person);
        continue;
      }
      readers.push(person);
      const said = opened.deviceSentMessage?.message ?? opened;
      const { senderKeyDistributionMessage, ...words } = said;
      if (group === null || Object.keys(words).some((field) => field !== 'messageContextInfo'))
        content = said;
    }

    const shared = sealedIn(children(node, 'enc').find(({ attrs }) => attrs.type === 'skmsg'));
    if (group === null || shared === null) return { readers, puzzled, content };
    readers.length = 0;
    for (const person of [...group.members.map((peer) => people.of(peer)), people.own]) {
      if (puzzled.includes(person)) continue;
      const opened = await tryTo(person, id, () => person.phone.unsealFromGroup(group.id, shared));
      (opened === null ? puzzled : readers).push(person);
      content = opened ?? content;
    }
    return { readers, puzzled, content };
  }

  async function fileOf(pointer: ReturnType<typeof readContent>['file']): Promise<SentMessage['file']> {
    if (pointer === null) return null;
    const sealed = cdn.at(pointer.path);
    if (sealed === null) {
      complain(`a file that the media servers do not have: ${pointer.path}`);
      return null;
    }
    const bytes = await unsealFile(sealed, pointer.mediaKey, pointer.kind);
    return { name: pointer.name, mimeType: pointer.mimeType, bytes };
  }

  /** A change of what stands already, or a reaction; true where it was one. */
  function applied(content: proto.IMessage, { attrs }: BinaryNode): boolean {
    const { id = '', to = '' } = attrs;
    if (content.reactionMessage) {
      const { key, text } = content.reactionMessage;
      // Phones find the message by its whole key, which in a group has the author (Baileys: a reaction's key).
      const isNamed = !people.circle(to)?.group || key?.fromMe || key?.participant;
      if (!isNamed) complain(`a reaction in a group to a message of nobody: ${key?.id}`);
      else reactions.push({ to, on: key?.id ?? '', emoji: text ?? '' });
      return true;
    }
    const change = changeIn(content);
    if (change === null) return false;
    if (changes.has(id)) return true;
    changes.add(id);
    const chat = chatAt(to);
    const isHere = chatAt(change.key?.remoteJid ?? '') === chat;
    const changed = sent.find((each) => isHere && each.id === change.key?.id && each.chat === chat);
    // Phones wait for what they could not read, and know nothing yet that could be changed.
    const isAwaited = changed === undefined && times.has(change.key?.id ?? '');
    const how = { edit: attrs.edit, isAgain: (times.get(id) ?? 0) > 1, now: Date.now() };
    const fault = isAwaited ? null : applyChange(changed, change, how);
    if (fault !== null) complain(`${fault}: ${change.key?.id}`);
    else if (changed && change.type === MESSAGE_EDIT)
      edits.push({ of: changed.id, text: changed.text, at: how.now });
    return true;
  }

  async function take(node: BinaryNode): Promise<Taken | null> {
    const { id = '', to = '' } = node.attrs;
    const group = people.circle(to)?.group ?? null;
    const chat = chatAt(to);
    const { readers, puzzled, content: said } = await open(node, group);
    const person = people.at(to);
    const alone = person === null ? group?.members.length === 0 : isOwn(people, person);
    // What only the own phone could read stands in nobody's chat yet.
    const content = alone || readers.some((reader) => !isOwn(people, reader)) ? said : null;
    // Between the devices of one account: nothing that anybody sees.
    if (node.attrs.category === 'peer') return null;
    const taken = { id, to, group, readers, puzzled };
    times.set(id, (times.get(id) ?? 0) + 1);
    if (!firstAt.has(id)) firstAt.set(id, Date.now());
    const known = sent.find((one) => one.id === id);
    if (known !== undefined) {
      known.times = times.get(id) ?? 1;
      known.content = content ?? known.content;
    }
    if (known !== undefined || content === null || applied(content, node)) return taken;
    const { file, ...reading } = readContent(content);
    const at = firstAt.get(id) ?? Date.now();
    const message: SentMessage = {
      id,
      to,
      chat,
      ...reading,
      file: await fileOf(file),
      at,
      times: times.get(id) ?? 1,
      retries: retries.get(id) ?? 0,
      acked: false,
      cut: false,
      edited: false,
      revoked: false,
      content,
    };
    const next = sent.findIndex((other) => other.at > at);
    sent.splice(next < 0 ? sent.length : next, 0, message);
    return taken;
  }

  return {
    sent,
    reactions,
    edits,

    take(node) {
      // One after the other, also where a connection ends while the next one begins.
      const done = before.then(() => take(node));
      before = done.catch(() => {});
      return done;
    },

    askedAgain(id) {
      const count = (retries.get(id) ?? 0) + 1;
      retries.set(id, count);
      const known = sent.find((one) => one.id === id);
      if (known !== undefined) known.retries = count;
      return count;
    },

    messageOf: (id) => sent.find((one) => one.id === id),
  };
}

function sealedIn(enc: BinaryNode | undefined): Sealed | null {
  const bytes = bytesOf(enc);
  const type = enc?.attrs.type;
  if (bytes === null || (type !== 'pkmsg' && type !== 'msg' && type !== 'skmsg')) return null;
  return { type, bytes };
}
