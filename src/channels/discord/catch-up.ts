/**
 * Keeps messages in order, per room. A new session omits the time before it: for every room where people talked, and
 * for threads that began meanwhile, newer messages than the last stored one are fetched and stored before later ones.
 */
import type * as Discord from 'discord-api-types/v10';
import type { ChannelState } from '../../core/channel.js';
import { createSlots } from '../../core/concurrency.js';
import { describe } from '../../core/errors.js';
import type { Address, InboundApart, InboundEvent } from '../../core/message.js';
import { backoffMs } from '../kit/supervise.js';
import type { Base } from './api.js';
import { type Directory, persistently, placeOf } from './directory.js';
import { CODE, failureOf } from './failure.js';
import { roomOf } from './outbound.js';
import { byAge, fieldsOf, idOf, isLater, isSnowflake, listOf, snowflakeAt } from './payload.js';
import type { GatewaySession } from './session.js';

/** Queues of work on events: sequential within a room, parallel across rooms, paused while held. */
export class Lanes {
  private readonly tails = new Map<string, Promise<void>>();
  private readonly held = new Map<string, Promise<unknown>>();
  private allHeld: Promise<void> | null = null;
  private openAll = () => {};

  /** The work must not reject. */
  add(room: string, work: () => void | Promise<void>): void {
    const before = this.tails.get(room) ?? Promise.resolve();
    const done = before
      .then(() => this.released(room))
      .then(work)
      .finally(() => {
        if (this.tails.get(room) === done) this.tails.delete(room);
      });
    this.tails.set(room, done);
  }

  holdAll(): void {
    this.allHeld ??= new Promise((resolve) => {
      this.openAll = resolve;
    });
  }

  releaseAll(): void {
    this.allHeld = null;
    this.openAll();
  }

  /** `until` must not reject. */
  hold(room: string, until: Promise<unknown>): void {
    const all = Promise.all([this.held.get(room), until]);
    this.held.set(room, all);
    void all.then(() => {
      if (this.held.get(room) === all) this.held.delete(room);
    });
  }

  private async released(room: string): Promise<void> {
    for (;;) {
      const wait = this.allHeld ?? this.held.get(room);
      if (wait === undefined) return;
      await wait;
    }
  }
}

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

export interface HeardRoom {
  address: Address;
  threadId: string | null;
  platformMessageId: string;
}

interface CatchUpParts extends Base {
  directory: Directory;
  session: GatewaySession;
  lanes: Lanes;
  newest(): Promise<HeardRoom[]>;
  eventOf(kind: string, payload: unknown): InboundEvent | null;
  /** Resolves when the events are stored, or the channel stops. */
  store(events: InboundEvent[]): Promise<void>;
}

export class CatchUp {
  private over = new AbortController();
  private done: Promise<void> = Promise.resolve();
  private guildTold = () => {};
  private readonly slots = createSlots(SIDE_BY_SIDE);

  constructor(
    private readonly parts: CatchUpParts,
    private readonly stopping: AbortSignal,
  ) {}

  /** A session began. Ends the work of an earlier call. */
  begin(): void {
    this.parts.lanes.holdAll();
    this.over.abort();
    this.over = new AbortController();
    const signal = AbortSignal.any([this.over.signal, this.stopping]);
    this.done = this.done.then(() => this.run(signal));
  }

  private async run(signal: AbortSignal): Promise<void> {
    const rooms = await this.newest(signal);
    if (rooms.length > 0) await this.allGuilds(signal);
    if (signal.aborted) return;
    const behind = rooms.filter((room) => this.isBehind(room));
    const fetched = this.fetchAll([...behind, ...this.threadsBegun(rooms)], signal);
    this.parts.lanes.releaseAll();
    await fetched;
    if (!signal.aborted) await this.parts.session.complete();
  }

  /** Holds the rooms while their messages are fetched. */
  private async fetchAll(rooms: readonly HeardRoom[], signal: AbortSignal): Promise<void> {
    const fetches = rooms.map((room) => {
      const fetched = this.fetchMissed(room, signal);
      this.parts.lanes.hold(roomOf(room), fetched);
      return fetched;
    });
    await Promise.all(fetches);
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
      const begun = signal.aborted ? [] : this.threadsBegun(await this.newest(signal));
      await this.fetchAll(
        begun.filter((room) => ids.includes(roomOf(room))),
        signal,
      );
    });
    for (const id of ids) this.parts.lanes.hold(id, this.done);
  }

  /** The last message of each room, the latest first. */
  private async newest(signal: AbortSignal): Promise<HeardRoom[]> {
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        return latestOfEach(await this.parts.newest());
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
    this.guildTold = () => {
      if (this.parts.directory.hasAllGuilds()) told.abort();
    };
    this.guildTold();
    await this.parts.clock.sleep(GUILDS_MS, AbortSignal.any([told.signal, signal]));
    this.guildTold = () => {};
  }

  noteGuild(): void {
    this.guildTold();
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
        if (!this.isBehind(room)) return;
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

  /** The messages of a room after the last stored one, oldest first. */
  private async missedIn(room: string, last: string, signal: AbortSignal): Promise<Discord.APIMessage[]> {
    const horizon = snowflakeAt(this.parts.clock.now() - HORIZON_MS);
    const first = await this.page(room, { after: isLater(horizon, last) ? horizon : last }, signal);
    // Usually that is all. Else the rest is fetched backwards from the newest.
    const known = first.at(-1)?.id;
    if (first.length < PAGE || known === undefined) return first;
    let rest: Discord.APIMessage[] = [];
    for (let pages = 0; pages < MOST_PAGES; pages += 1) {
      const before = rest[0]?.id;
      const earlier = await this.page(room, before === undefined ? {} : { before }, signal);
      const unknown = earlier.filter(({ id }) => isLater(id, known));
      rest = [...unknown, ...rest];
      if (unknown.length < PAGE) return [...first, ...rest];
    }
    this.parts.log.warn({ channel: 'discord', room }, 'too many missed messages; fetched only the newest');
    return [...first, ...rest];
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
  const oldestFirst = rooms
    .filter((room) => isSnowflake(roomOf(room)) && isSnowflake(room.platformMessageId))
    .map((room) => ({ room, id: room.platformMessageId }))
    .sort(byAge);
  return [...new Map(oldestFirst.map(({ room }) => [roomOf(room), room])).values()].sort((one, other) =>
    byAge({ id: other.platformMessageId }, { id: one.platformMessageId }),
  );
}

/** In the channel's state: every stored thread was asked about. */
const ASKED = 'threads';

/**
 * Makes private threads, formerly stored as threads, chats of their own. Never rejects; retries at start-up.
 */
export async function tellPrivateThreads(
  parts: CatchUpParts,
  state: ChannelState,
  signal: AbortSignal,
): Promise<void> {
  try {
    if ((await state.get([ASKED])).has(ASKED)) return;
    const events: InboundApart[] = [];
    let isAllKnown = true;
    for (const { address, threadId } of await parts.newest()) {
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
async function isPrivate(parts: CatchUpParts, channel: string, thread: string, signal: AbortSignal) {
  const { api, directory } = parts;
  let found: boolean | null = null;
  await persistently(parts, signal, 'looking up a Discord thread failed', async () => {
    try {
      const known = await directory.ask(api, thread, signal);
      found = known && placeOf(known).threadId === null;
    } catch (error) {
      const { code } = failureOf(error);
      if (code !== CODE.missingAccess && code !== CODE.unknownChannel) throw error;
      const isBarred = code === CODE.missingAccess;
      // Access to a channel includes its threads, except private ones.
      if (isBarred) await api.get(`/channels/${channel}`, signal);
      found = isBarred;
    }
  });
  return found as boolean | null;
}
