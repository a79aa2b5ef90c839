/** What is remembered of people and messages while the process runs: names, addresses, what a reply may quote. */
import type { WAMessageKey } from '@whiskeysockets/baileys';
import { cutAt } from '../../core/cut.js';
import { bounded } from '../kit/bounded.js';
import type { Person } from './jid.js';

const MOST_PEOPLE = 5_000;
const MOST_MESSAGES = 2_000;
const LONGEST_QUOTE = 1_000;

/** What a reply can show of the message it answers. */
export interface Quotable {
  key: WAMessageKey;
  text: string;
}

export interface Cache {
  notePerson(person: Person, name: string | undefined): void;
  nameOf(jid: string): string | null;
  otherForm(jid: string): string | null;
  noteMessage(addresses: (string | undefined)[], message: Quotable & { author: string }): void;
  quotable(chat: string, id: string): Quotable | null;
  authorOf(chat: string, id: string): string | null;
  /** For how many seconds messages of a chat stay there ("disappearing messages"); 0: for good. */
  noteLifetime(addresses: (string | undefined)[], seconds: number): void;
  lifetimeOf(chat: string): number;
}

export function createCache(): Cache {
  const names = bounded<string, string>(MOST_PEOPLE);
  const forms = bounded<string, string>(2 * MOST_PEOPLE);
  const messages = bounded<string, Quotable & { author: string }>(MOST_MESSAGES);
  const lifetimes = bounded<string, number>(MOST_PEOPLE);
  const keyOf = (chat: string, id: string) => `${chat} ${id}`;
  const message = (chat: string, id: string) => messages.get(keyOf(chat, id)) ?? null;

  return {
    notePerson({ phone, lid }, name) {
      if (phone !== null && lid !== null) {
        forms.set(phone, lid);
        forms.set(lid, phone);
      }
      for (const jid of [phone, lid]) if (jid !== null && name?.trim()) names.set(jid, name.trim());
    },
    nameOf: (jid) => names.get(jid) ?? null,
    otherForm: (jid) => forms.get(jid) ?? null,
    noteMessage(addresses, { key, text, author }) {
      if (!key.id) return;
      const kept = { key, author, text: cutAt(text, LONGEST_QUOTE) };
      for (const address of addresses) if (address !== undefined) messages.set(keyOf(address, key.id), kept);
    },
    quotable: message,
    authorOf: (chat, id) => message(chat, id)?.author ?? null,
    noteLifetime(addresses, seconds) {
      for (const address of addresses) {
        if (address === undefined) continue;
        if (seconds > 0) lifetimes.set(address, seconds);
        else lifetimes.delete(address);
      }
    },
    lifetimeOf: (chat) => lifetimes.get(chat) ?? 0,
  };
}
