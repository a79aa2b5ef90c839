/** The people, groups and messages that the channel has met: in memory, except for message secrets. */
import { createHash } from 'node:crypto';
import type { GroupMetadata, WAMessageKey } from '@whiskeysockets/baileys';
import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import type { ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { cutAt } from '../../core/cut.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { createLookupCache, isAdministrator } from '../kit/lookup-cache.js';
import { isSamePerson, type Person, personOf } from './ids.js';

const MOST_PEOPLE = 5_000;
const MOST_MESSAGES = 2_000;
const LONGEST_QUOTE = 1_000;

/** A message in the form in which replies quote it. */
export interface Quotable {
  key: WAMessageKey;
  text: string;
  author: string;
}

export type Directory = ReturnType<typeof createDirectory>;

/** People's names, addresses and messages. A chat is found by any of its addresses. */
export function createDirectory() {
  const names = new LRUCache<string, string>({ max: MOST_PEOPLE });
  const forms = new LRUCache<string, string>({ max: 2 * MOST_PEOPLE });
  const messages = new LRUCache<string, Quotable>({ max: MOST_MESSAGES });
  const lifetimes = new LRUCache<string, number>({ max: MOST_PEOPLE });
  const gone = new LRUCache<string, true>({ max: MOST_MESSAGES });
  const quotable = (chat: string, id: string): Quotable | null => messages.get(`${chat} ${id}`) ?? null;

  return {
    notePerson({ phone, lid }: Person, name?: string): void {
      if (phone !== null && lid !== null) {
        forms.set(phone, lid);
        forms.set(lid, phone);
      }
      for (const jid of [phone, lid]) if (jid !== null && name?.trim()) names.set(jid, name.trim());
    },
    nameOf: (jid: string): string | null => names.get(jid) ?? null,
    /** A person's other address. */
    otherForm: (jid: string): string | null => forms.get(jid) ?? null,
    noteMessage(chats: string[], { key, text, author }: Quotable): void {
      const kept = { key, author, text: cutAt(text, LONGEST_QUOTE) };
      for (const chat of chats) if (key.id) messages.set(`${chat} ${key.id}`, kept);
    },
    quotable,
    /** Somebody deleted these messages for everybody. */
    noteGone(ids: string[]): void {
      for (const id of ids) gone.set(id, true);
    },
    isGone: (id: string): boolean => gone.has(id),
    authorOf: (chat: string, id: string): string | null => quotable(chat, id)?.author ?? null,
    /** Lifetime of messages in a chat ("disappearing messages"), in seconds; 0: no limit. */
    noteLifetime(chats: string[], seconds: number): void {
      for (const chat of chats) {
        if (seconds > 0) lifetimes.set(chat, seconds);
        else lifetimes.delete(chat);
      }
    },
    lifetimeOf: (chat: string): number => lifetimes.get(chat) ?? 0,
  };
}

const MOST_TITLES = 2_000;
const MOST_GROUPS = 200;
const METADATA_KEPT_MS = 600_000;
/** Pause after a failed lookup before any group is asked about again. */
const RETRY_AFTER_MS = 60_000;

export type GroupDirectory = ReturnType<typeof createGroups>;

/** Titles, members and administrators of groups: looked up once, and cached until they change. */
export function createGroups(
  ask: (group: string) => Promise<GroupMetadata>,
  directory: Directory,
  clock: Clock,
  log: Log,
) {
  const titles = new LRUCache<string, string>({ max: MOST_TITLES });
  const failedAt = new LRUCache<string, number>({ max: MOST_GROUPS });
  const groups = createLookupCache(lookUp, { most: MOST_GROUPS, clock });

  async function lookUp(group: string): Promise<GroupMetadata> {
    try {
      const metadata = await ask(group);
      failedAt.delete(group);
      if (metadata.subject) titles.set(group, metadata.subject);
      for (const { id, phoneNumber, lid } of metadata.participants) {
        directory.notePerson(personOf(id, phoneNumber, lid));
      }
      return metadata;
    } catch (error) {
      failedAt.set(group, clock.now());
      throw error;
    }
  }

  return {
    /** null until known; this starts a lookup. */
    titleOf(group: string): string | null {
      const title = titles.get(group);
      const failed = failedAt.get(group);
      if (title === undefined && (failed === undefined || clock.now() - failed >= RETRY_AFTER_MS)) {
        groups.get(group, 0).catch((error) => {
          const fields = { channel: 'whatsapp', group, reason: describe(error) };
          log.debug(fields, 'looking up a WhatsApp group failed');
        });
      }
      return title ?? null;
    },
    /** Rejects when WhatsApp cannot be asked. */
    metadata: (group: string) => groups.get(group, METADATA_KEPT_MS),
    /** Rejects when WhatsApp cannot be asked. */
    isAdministrator: (group: string, sender: string) =>
      isAdministrator(groups, group, (metadata) => isAdministratorOf(metadata, sender)),
    /** Whether a person is an administrator, as far as is known now. */
    manages(group: string, { phone, lid }: Person): boolean {
      const metadata = groups.known(group, Number.POSITIVE_INFINITY);
      const isOne = (jid: string | null) => jid !== null && metadata && isAdministratorOf(metadata, jid);
      return [phone, lid].some(isOne);
    },
    changed(changes: Partial<GroupMetadata>[]): void {
      for (const { id, subject } of changes) {
        if (!id) continue;
        if (subject) titles.set(id, subject);
        groups.forget(id);
      }
    },
    membersChanged: groups.forget,
    /** Changes may have been missed: clears the cache. */
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
const PRUNE_EVERY_MS = 1_800_000;
/** A message's id selects the shelf of its secret; each shelf is one value of the channel's state. */
const SHELVES = 256;
const MOST_ON_SHELF = 16;
const ALL_SHELVES = Array.from({ length: SHELVES }, (_, number) => `secrets-${number}`);

const shelfSchema = z.array(
  z.object({ id: z.string(), author: z.string(), secret: z.string(), at: z.number() }),
);
type Shelf = z.output<typeof shelfSchema>;

export interface MessageSecret {
  /** The address of the message's author. */
  author: string;
  bytes: Uint8Array;
}

export type Secrets = ReturnType<typeof createSecrets>;

/**
 * Secrets of recent messages: since May 2026 an edit is encrypted with that of the message it changes. Kept
 * for an hour (edits are possible for 15 minutes), on disk for 90 minutes at most, across restarts, and in
 * bounded space.
 */
export function createSecrets(state: ChannelState, clock: Clock) {
  let shelves: Promise<Map<string, Shelf>> | null = null;

  function loaded(): Promise<Map<string, Shelf>> {
    shelves ??= load().catch((error) => {
      shelves = null;
      throw error;
    });
    return shelves;
  }

  async function load(): Promise<Map<string, Shelf>> {
    const found = await state.get(ALL_SHELVES);
    return new Map(
      [...found].map(([name, value]) => [name, shelfSchema.safeParse(JSON.parse(value)).data ?? []]),
    );
  }

  function youngOn(name: string, all: Map<string, Shelf>): Shelf {
    const oldest = clock.now() - SECRET_KEPT_MS;
    return (all.get(name) ?? []).filter(({ at }) => at >= oldest);
  }

  function put(name: string, shelf: Shelf, all: Map<string, Shelf>): Promise<void> {
    all.set(name, shelf);
    return state.set(new Map([[name, shelf.length === 0 ? null : JSON.stringify(shelf)]]));
  }

  return {
    async keep(id: string, { author, bytes }: MessageSecret): Promise<void> {
      const name = shelfOf(id);
      const secret = Buffer.from(bytes).toString('base64');
      const all = await loaded();
      const others = youngOn(name, all).filter((each) => each.id !== id || each.author !== author);
      await put(name, [...others, { id, author, secret, at: clock.now() }].slice(-MOST_ON_SHELF), all);
    },
    /** Several, if messages in several chats have this id. */
    async of(id: string): Promise<{ author: string; bytes: Buffer }[]> {
      const found = youngOn(shelfOf(id), await loaded()).filter((each) => each.id === id);
      return found.map(({ author, secret }) => ({ author, bytes: Buffer.from(secret, 'base64') }));
    },
    /** Keeps removing old secrets from the disk until the signal aborts. Never rejects. */
    async prune(log: Log, signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        try {
          const all = await loaded();
          for (const [name, shelf] of all) {
            const young = youngOn(name, all);
            if (young.length < shelf.length) await put(name, young, all);
          }
        } catch (error) {
          const fields = { channel: 'whatsapp', reason: describe(error) };
          log.warn(fields, 'pruning old message secrets failed; retrying in 30 minutes');
        }
        await clock.sleep(PRUNE_EVERY_MS, signal);
      }
    },
  };
}

function shelfOf(id: string): string {
  return `secrets-${createHash('sha256').update(id).digest().readUInt8(0) % SHELVES}`;
}
