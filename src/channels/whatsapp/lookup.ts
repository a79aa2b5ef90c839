/** What is remembered of people and messages while the process runs: names, addresses, what a reply may quote. */

import { createHash } from 'node:crypto';
import type { GroupMetadata, WAMessageKey } from '@whiskeysockets/baileys';
import * as z from 'zod';
import type { ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { cutAt } from '../../core/cut.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { bounded } from '../kit/bounded.js';
import { createLookupCache, isAdministrator } from '../kit/lookup-cache.js';
import { isSamePerson, type Person, personOf } from './ids.js';

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

const MOST_TITLES = 2_000;
const MOST_GROUPS = 200;
const KEPT_MS = 600_000;
/** After a question that failed, a group is not asked about again for so long. */
const PATIENCE_MS = 60_000;

export interface Groups {
  /** null until it is known; WhatsApp is then being asked. */
  titleOf(group: string): string | null;
  /** Throws when WhatsApp cannot be asked. */
  metadata(group: string): Promise<GroupMetadata>;
  /** Throws when WhatsApp cannot be asked. */
  isAdministrator(group: string, sender: string): Promise<boolean>;
  /** As far as it is known now; WhatsApp is not asked. */
  manages(group: string, person: Person): boolean;
  changed(changes: Partial<GroupMetadata>[]): void;
  membersChanged(group: string): void;
  /** Changes may have been missed: everything is asked anew. */
  wasAway(): void;
}

interface Parts {
  ask(group: string): Promise<GroupMetadata>;
  met(person: Person): void;
  clock: Clock;
  log: Log;
}

export function createGroups({ ask, met, clock, log }: Parts): Groups {
  const titles = bounded<string, string>(MOST_TITLES);
  const failedAt = bounded<string, number>(MOST_GROUPS);
  const groups = createLookupCache(askFor, { most: MOST_GROUPS, clock });

  async function askFor(group: string): Promise<GroupMetadata> {
    try {
      const metadata = await ask(group);
      failedAt.delete(group);
      if (metadata.subject) titles.set(group, metadata.subject);
      for (const one of metadata.participants) met(personOf(one.id, one.phoneNumber, one.lid));
      return metadata;
    } catch (error) {
      failedAt.set(group, clock.now());
      throw error;
    }
  }

  return {
    titleOf(group) {
      const title = titles.get(group);
      if (title !== undefined) return title;
      if (clock.now() - (failedAt.get(group) ?? Number.NEGATIVE_INFINITY) >= PATIENCE_MS) {
        groups
          .get(group, 0)
          .catch((error) =>
            log.debug(
              { channel: 'whatsapp', group, reason: describe(error) },
              'WhatsApp could not be asked about a group',
            ),
          );
      }
      return null;
    },

    metadata: (group) => groups.get(group, KEPT_MS),

    isAdministrator: (group, sender) =>
      isAdministrator(groups, group, (metadata) => isAdministratorOf(metadata, sender)),

    manages(group, { phone, lid }) {
      const metadata = groups.known(group, Number.POSITIVE_INFINITY);
      return (
        metadata !== undefined && [phone, lid].some((jid) => jid !== null && isAdministratorOf(metadata, jid))
      );
    },

    changed(changes) {
      for (const { id, subject } of changes) {
        if (!id) continue;
        if (subject) titles.set(id, subject);
        groups.forget(id);
      }
    },

    membersChanged: groups.forget,
    wasAway: groups.forgetAll,
  };
}

function isAdministratorOf({ participants }: GroupMetadata, sender: string): boolean {
  return participants.some(
    ({ id, phoneNumber, lid, admin }) =>
      (admin === 'admin' || admin === 'superadmin') && isSamePerson(personOf(id, phoneNumber, lid), sender),
  );
}

const SECRET_KEPT_MS = 3_600_000;
const FORGET_EVERY_MS = 1_800_000;
/** By its id, a message has its secret in one of these; each is one value of the channel's state. */
const SHELVES = 256;
const MOST_ON_SHELF = 16;
const ALL_SHELVES = Array.from({ length: SHELVES }, (_, number) => shelf(number));

const entry = z.object({ id: z.string(), author: z.string(), secret: z.string(), at: z.number() });
const shelfSchema = z.array(entry);
type Entry = z.output<typeof entry>;

export interface Secret {
  /** The address of who wrote the message. */
  author: string;
  bytes: Buffer;
}

export interface Secrets {
  /** Resolves when it is on the disk. */
  keep(id: string, secret: { author: string; bytes: Uint8Array }): Promise<void>;
  /** Several, if messages in several chats have this id. */
  of(id: string): Promise<Secret[]>;
  /** Takes what is too old from the disk, again and again, until the signal aborts. Never rejects. */
  forgetOld(log: Log, signal: AbortSignal): Promise<void>;
}

export function createSecrets(state: ChannelState, clock: Clock): Secrets {
  const shelves = new Map<string, Entry[]>();

  /** Shelves are read when they are asked for first. */
  async function load(names: readonly string[]): Promise<void> {
    const unread = names.filter((name) => !shelves.has(name));
    if (unread.length === 0) return;
    const found = await state.get(unread);
    for (const name of unread) {
      const written = found.get(name);
      const read = shelfSchema.safeParse(written === undefined ? [] : JSON.parse(written));
      // Somebody else may have asked meanwhile.
      if (!shelves.has(name)) shelves.set(name, read.data ?? []);
    }
  }

  function youngOn(name: string): Entry[] {
    const oldest = clock.now() - SECRET_KEPT_MS;
    return (shelves.get(name) ?? []).filter(({ at }) => at >= oldest);
  }

  async function put(name: string, entries: Entry[]): Promise<void> {
    shelves.set(name, entries);
    await state.set(new Map([[name, entries.length === 0 ? null : JSON.stringify(entries)]]));
  }

  async function forget(): Promise<void> {
    await load(ALL_SHELVES);
    for (const name of ALL_SHELVES) {
      const young = youngOn(name);
      if (young.length < (shelves.get(name)?.length ?? 0)) await put(name, young);
    }
  }

  return {
    async keep(id, { author, bytes }) {
      const name = shelfOf(id);
      await load([name]);
      const secret = Buffer.from(bytes).toString('base64');
      const others = youngOn(name).filter((each) => each.id !== id || each.author !== author);
      await put(name, [...others, { id, author, secret, at: clock.now() }].slice(-MOST_ON_SHELF));
    },

    async of(id) {
      const name = shelfOf(id);
      await load([name]);
      return youngOn(name)
        .filter((each) => each.id === id)
        .map(({ author, secret }) => ({ author, bytes: Buffer.from(secret, 'base64') }));
    },

    async forgetOld(log, signal) {
      while (!signal.aborted) {
        await forget().catch((error) =>
          log.warn(
            { channel: 'whatsapp', reason: describe(error) },
            'secrets of old messages were not removed; it is tried again in half an hour',
          ),
        );
        await clock.sleep(FORGET_EVERY_MS, signal);
      }
    },
  };
}

function shelfOf(id: string): string {
  return shelf(createHash('sha256').update(id).digest().readUInt8(0) % SHELVES);
}

function shelf(number: number): string {
  return `secrets-${number}`;
}
