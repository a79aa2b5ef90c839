/** What is remembered of people and of what was said, as long as the process lives and within bounds. */
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

export interface Memory {
  met(person: Person, name: string | undefined): void;
  nameOf(jid: string): string | null;
  otherForm(jid: string): string | null;
  heard(chat: (string | undefined)[], message: Quotable & { author: string }): void;
  quotable(chat: string, id: string): Quotable | null;
  authorOf(chat: string, id: string): string | null;
  /** For how many seconds what is said in a chat stays there; 0: for good. */
  disappearing(chat: (string | undefined)[], seconds: number): void;
  disappearsAfter(chat: string): number;
}

export function createMemory(): Memory {
  const names = bounded<string, string>(MOST_PEOPLE);
  const forms = bounded<string, string>(2 * MOST_PEOPLE);
  const messages = bounded<string, Quotable & { author: string }>(MOST_MESSAGES);
  const lifetimes = bounded<string, number>(MOST_PEOPLE);
  const at = (chat: string, id: string) => `${chat} ${id}`;
  const message = (chat: string, id: string) => messages.get(at(chat, id)) ?? null;

  return {
    met({ phone, lid }, name) {
      if (phone !== null && lid !== null) {
        forms.set(phone, lid);
        forms.set(lid, phone);
      }
      for (const jid of [phone, lid]) if (jid !== null && name?.trim()) names.set(jid, name.trim());
    },
    nameOf: (jid) => names.get(jid) ?? null,
    otherForm: (jid) => forms.get(jid) ?? null,
    heard(chat, { key, text, author }) {
      if (!key.id) return;
      const kept = { key, author, text: cutAt(text, LONGEST_QUOTE) };
      for (const address of chat) if (address !== undefined) messages.set(at(address, key.id), kept);
    },
    quotable: message,
    authorOf: (chat, id) => message(chat, id)?.author ?? null,
    disappearing(chat, seconds) {
      for (const address of chat) {
        if (address === undefined) continue;
        if (seconds > 0) lifetimes.set(address, seconds);
        else lifetimes.delete(address);
      }
    },
    disappearsAfter: (chat) => lifetimes.get(chat) ?? 0,
  };
}
