/**
 * Keeps messages in order, per room. A new session omits the time before it: for every room where people talked, and
 * for threads that began meanwhile, newer messages than the last stored one are fetched and stored before later ones.
 */
import type * as Discord from 'discord-api-types/v10';
import { createSlots } from '../../core/concurrency.js';
import { describe } from '../../core/errors.js';
import type { Address, InboundApart, InboundEvent } from '../../core/message.js';
import { backoffMs } from '../kit/supervise.js';
import { persistently, placeOf } from './directory.js';
import { CODE, failureOf } from './failure.js';
import { roomOf } from './outbound.js';
import type { ShardParts } from './parts.js';
import { byAge, fieldsOf, idOf, isLater, isSnowflake, listOf, snowflakeAt } from './payload.js';

/** Guilds arrive one by one after the login; one with an outage does not. */
const GUILDS_MS = 3_000;
/** Few at a time: replies use the same API. */
const SIDE_BY_SIDE = 3;
/** The maximum that Discord returns at once. */
const PAGE = 100;
/** In a room with more messages, the newest matter most; so do threads with recent messages. */
const MOST_PAGES = 20;
const MOST_THREADS = 100;
/** Older messages are not fetched. */
const HORIZON_MS = 7 * 86_400_000;

interface HeardRoom {
  address: Address;
  threadId: string | null;
  platformMessageId: string;
}

interface CatchUpParts extends ShardParts {
  eventOf(kind: string, payload: unknown): InboundEvent | null;
  /** Resolves when the events are stored, or the channel stops. */
  store(events: InboundEvent[]): Promise<void>;
}

export class CatchUp {
  private over = new AbortController();
  /** Resolves when it is known which rooms are behind. */
  private listing: Promise<void> = Promise.resolve();
  /** Rooms whose messages are being fetched. */
  private readonly held = new Map<string, Promise<unknown>>();
  private done: Promise<void> = Promise.resolve();
  private readonly slots = createSlots(SIDE_BY_SIDE);
  /** A guild was received or lost. */
  noteGuild = () => {};

  constructor(
    private readonly parts: CatchUpParts,
    private readonly stopping: AbortSignal,
  ) {}

  /** A session began. Ends the work of an earlier call. */
  begin(): void {
    this.over.abort();
    this.over = new AbortController();
    const signal = AbortSignal.any([this.over.signal, this.stopping]);
    this.listing = new Promise((listed) => {
      this.done = this.done.then(() => this.run(signal, listed));
    });
  }

  /** Resolves when this room has no missed messages any more. */
  async ready(room: string): Promise<void> {
    for (;;) {
      const { listing } = this;
      await listing;
      const held = this.held.get(room);
      if (held === undefined && listing === this.listing) return;
      await held;
    }
  }

  private async run(signal: AbortSignal, listed: () => void): Promise<void> {
    const all = await this.newest(signal);
    if (all.length > 0) await this.allGuilds(signal);
    const rooms = all.filter((room) => this.isOurs(room));
    const behind = rooms.filter((room) => this.isBehind(room));
    const begun = this.threadsBegun(rooms);
    // Of unknown ones Discord is asked whether they are ours.
    const [known, unknown] = [
      behind.filter((room) => this.isKnown(room)),
      behind.filter((room) => !this.isKnown(room)),
    ];
    const fetched = this.fetchAll([...known, ...begun, ...unknown], signal);
    listed();
    await fetched;
    if (!signal.aborted) await this.parts.session.complete();
  }

  private isKnown(room: HeardRoom): boolean {
    return this.parts.directory.channel(roomOf(room)) !== null;
  }

  /** Also true if it is not known whose it is. */
  private isOurs(room: HeardRoom): boolean {
    const channel = this.parts.directory.channel(roomOf(room));
    return channel === null || this.parts.seat.hears(idOf(channel.guild_id) ?? null);
  }

  /** Holds the rooms while their messages are fetched. */
  private async fetchAll(rooms: readonly HeardRoom[], signal: AbortSignal): Promise<void> {
    const fetches = rooms.map((room) => {
      const fetched = this.fetchMissed(room, signal);
      this.hold(roomOf(room), fetched);
      return fetched;
    });
    await Promise.all(fetches);
  }

  private hold(room: string, until: Promise<void>): void {
    const all = Promise.all([this.held.get(room), until]);
    this.held.set(room, all);
    void all.then(() => {
      if (this.held.get(room) === all) this.held.delete(room);
    });
  }

  /** Threads, and forum posts, that began meanwhile: only in servers where people talked with us. */
  private threadsBegun(rooms: readonly HeardRoom[]): HeardRoom[] {
    const { directory, session } = this.parts;
    const known = new Set(rooms.map(roomOf));
    const guilds = new Set(rooms.map((room) => directory.channel(roomOf(room))?.guild_id));
    const heardAt = session.heardAt;
    const since = heardAt === null ? rooms[0]?.platformMessageId : snowflakeAt(heardAt);
    if (since === undefined) return [];
    return directory
      .threads()
      .filter(({ id, guild_id }) => guild_id && guilds.has(guild_id) && !known.has(id))
      .flatMap((thread) => ({ thread, id: thread.last_message_id ?? '0' }))
      .filter(({ id }) => isLater(id, since))
      .sort((one, other) => byAge(other, one))
      .slice(0, MOST_THREADS)
      .map(({ thread }) => ({ ...placeOf(thread), platformMessageId: since }));
  }

  /** Threads came into view: fetches their recent messages. */
  noteThreads(payload: unknown): void {
    const { threads } = fieldsOf<Discord.GatewayThreadListSyncDispatchData>(payload);
    const ids = listOf(threads).flatMap(({ id }) => id ?? []);
    const signal = AbortSignal.any([this.over.signal, this.stopping]);
    this.done = this.done.then(async () => {
      const begun = signal.aborted
        ? []
        : this.threadsBegun((await this.newest(signal)).filter((room) => this.isOurs(room)));
      await this.fetchAll(
        begun.filter((room) => ids.includes(roomOf(room))),
        signal,
      );
    });
    for (const id of ids) this.hold(id, this.done);
  }

  /** The last message of each room, the latest first. */
  private async newest(signal: AbortSignal): Promise<HeardRoom[]> {
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        return latestOfEach(await this.parts.host.newest());
      } catch (error) {
        const reason = describe(error);
        this.parts.log.warn({ channel: 'discord', reason }, 'reading the newest messages failed; retrying');
        await this.parts.clock.sleep(backoffMs(tries), signal);
      }
    }
    return [];
  }

  /** Guilds list the last message of each of their channels, which saves most calls. */
  private async allGuilds(signal: AbortSignal): Promise<void> {
    const told = new AbortController();
    this.noteGuild = () => {
      if (this.parts.directory.hasAllGuilds(this.parts.seat)) told.abort();
    };
    this.noteGuild();
    await this.parts.clock.sleep(GUILDS_MS, AbortSignal.any([told.signal, signal]));
    this.noteGuild = () => {};
  }

  /** Also true if the last message is unknown. */
  private isBehind(room: HeardRoom): boolean {
    const last = this.parts.directory.channel(roomOf(room))?.last_message_id;
    return !last || isLater(last, room.platformMessageId);
  }

  private async fetchMissed(room: HeardRoom, signal: AbortSignal): Promise<void> {
    const { api, directory, log } = this.parts;
    const id = roomOf(room);
    const leave = await this.slots.enter();
    await persistently(this.parts, signal, 'fetching missed messages failed', async () => {
      if (directory.channel(id) === null) {
        await directory.ask(api, id, signal);
        if (!this.isOurs(room) || !this.isBehind(room)) return;
      }
      const missed = await this.missedIn(id, room.platformMessageId, signal);
      const events = missed.flatMap((message) => this.parts.eventOf('MESSAGE_CREATE', message) ?? []);
      for (let from = 0; from < events.length && !signal.aborted; from += PAGE) {
        await this.parts.store(events.slice(from, from + PAGE));
      }
      if (events.length === 0) return;
      log.info({ channel: 'discord', room: id, messages: events.length }, 'fetched missed messages');
    });
    leave();
  }

  /** The messages of a room after the last stored one, oldest first; fetched backwards from the newest. */
  private async missedIn(room: string, last: string, signal: AbortSignal): Promise<Discord.APIMessage[]> {
    const horizon = snowflakeAt(this.parts.clock.now() - HORIZON_MS);
    const known = isLater(horizon, last) ? horizon : last;
    let missed: Discord.APIMessage[] = [];
    for (let pages = 0; pages < MOST_PAGES; pages += 1) {
      const before = missed[0]?.id;
      const earlier = await this.page(room, before === undefined ? {} : { before }, signal);
      const unknown = earlier.filter(({ id }) => isLater(id, known));
      missed = [...unknown, ...missed];
      if (unknown.length < PAGE) return missed;
    }
    this.parts.log.warn({ channel: 'discord', room }, 'too many missed messages; fetched only the newest');
    return missed;
  }

  private async page(room: string, query: Record<string, string>, signal: AbortSignal) {
    const path = `/channels/${room}/messages`;
    const asked = { limit: String(PAGE), ...query };
    const told = await this.parts.api.get<Discord.APIMessage[]>(path, signal, asked);
    if (!Array.isArray(told)) throw new Error('Discord answers with something else than messages');
    return told.filter((each) => idOf(each?.id) !== undefined).sort(byAge);
  }

  /** Resolves when nothing is under way any more. */
  idle(): Promise<void> {
    return this.done;
  }
}

/** A private thread may be listed twice: as a chat of its own, and formerly as a thread of its channel. */
function latestOfEach(rooms: readonly HeardRoom[]): HeardRoom[] {
  const seen = new Set<string>();
  return rooms
    .filter((room) => isSnowflake(roomOf(room)) && isSnowflake(room.platformMessageId))
    .sort((one, other) => byAge({ id: other.platformMessageId }, { id: one.platformMessageId }))
    .filter((room) => !seen.has(roomOf(room)) && seen.add(roomOf(room)));
}

/** In the channel's state: every stored thread was asked about. */
const ASKED = 'threads';

/**
 * Makes private threads, formerly stored as threads, chats of their own. Never rejects; retries at start-up.
 */
export async function tellPrivateThreads(parts: CatchUpParts, signal: AbortSignal): Promise<void> {
  const { state } = parts.host;
  try {
    if ((await state.get([ASKED])).has(ASKED)) return;
    const events: InboundApart[] = [];
    let isAllKnown = true;
    for (const { address, threadId } of await parts.host.newest()) {
      if (threadId === null || !isSnowflake(threadId)) continue;
      const found = await isPrivate(parts, address, threadId, signal);
      if (found === true) events.push({ kind: 'apart', from: address, threadId, to: threadId });
      isAllKnown &&= found !== null;
    }
    await parts.store(events);
    if (isAllKnown && !signal.aborted) await state.set(new Map([[ASKED, 'asked']]));
  } catch (error) {
    const reason = describe(error);
    parts.log.warn(
      { channel: 'discord', reason },
      'checking stored threads failed; retrying at the next start',
    );
  }
}

/** null if Discord does not tell; a thread that is gone counts as public. */
function isPrivate(parts: CatchUpParts, channel: string, thread: string, signal: AbortSignal) {
  const { api, directory } = parts;
  return persistently(parts, signal, 'looking up a Discord thread failed', async () => {
    try {
      const known = await directory.ask(api, thread, signal);
      return known && placeOf(known).threadId === null;
    } catch (error) {
      const { code } = failureOf(error);
      if (code === CODE.unknownChannel) return false;
      if (code !== CODE.missingAccess) throw error;
      // Access to a channel includes its threads, except private ones.
      await api.get(`/channels/${channel}`, signal);
      return true;
    }
  });
}
