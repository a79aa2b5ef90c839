/**
 * Keeps messages in order, per room. A new session omits the time before it: for every room where people
 * talked, and for threads that began meanwhile, messages after the newest stored one are fetched, and stored
 * before later ones. Also asks once which stored threads are private.
 */
import type * as Discord from 'discord-api-types/v10';
import type { ChannelState } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import type { Address, InboundApart, InboundEvent } from '../../core/message.js';
import { backoffMs } from '../kit/supervise.js';
import type { Base } from './api.js';
import { type Directory, persistently } from './directory.js';
import { CODE, failureOf } from './failure.js';
import { roomOf } from './outbound.js';
import { byAge, fieldsOf, idOf, isLater, isSnowflake, itemsOf, listOf, snowflakeAt } from './payload.js';
import type { GatewaySession } from './session.js';

/** Queues of work on events: sequential within a room, parallel across rooms, paused while held. */
export function createLanes() {
  const tails = new Map<string, Promise<void>>();
  const held = new Map<string, Promise<unknown>>();
  let allHeld: Promise<void> | null = null;
  let releaseAll = () => {};

  async function released(room: string): Promise<void> {
    for (;;) {
      const wait = allHeld ?? held.get(room);
      if (wait === undefined) return;
      await wait;
    }
  }

  return {
    /** The work must not reject. */
    add(room: string, work: () => void | Promise<void>): void {
      const before = tails.get(room) ?? Promise.resolve();
      const done = before
        .then(() => released(room))
        .then(work)
        .finally(() => {
          if (tails.get(room) === done) tails.delete(room);
        });
      tails.set(room, done);
    },
    holdAll(): void {
      allHeld ??= new Promise((resolve) => {
        releaseAll = resolve;
      });
    },
    releaseAll(): void {
      allHeld = null;
      releaseAll();
    },
    hold(room: string): () => void {
      let release = () => {};
      const wait = new Promise<void>((resolve) => {
        release = resolve;
      });
      const all = Promise.all([held.get(room), wait]);
      held.set(room, all);
      return () => {
        if (held.get(room) === all) held.delete(room);
        release();
      };
    },
  };
}

export type Lanes = ReturnType<typeof createLanes>;

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
    const behind = [
      ...rooms.filter((room) => this.isBehind(room)).sort(latestFirst),
      ...this.threadsBegun(rooms),
    ];
    const fetched = this.fetchAll(behind, signal);
    this.parts.lanes.releaseAll();
    await fetched;
    if (!signal.aborted) await this.parts.session.complete();
  }

  /** Holds the rooms while their messages are fetched. */
  private async fetchAll(rooms: readonly HeardRoom[], signal: AbortSignal): Promise<void> {
    const left = rooms.map((room) => ({ room, release: this.parts.lanes.hold(roomOf(room)) }));
    const workers = Array.from({ length: SIDE_BY_SIDE }, async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        await this.fetchMissed(next.room, signal);
        next.release();
      }
    });
    await Promise.all(workers);
  }

  /** Threads, and forum posts, that began meanwhile: only in servers where people talked with us. */
  private threadsBegun(rooms: readonly HeardRoom[]): HeardRoom[] {
    const known = new Set(rooms.map(roomOf));
    const guilds = new Set(rooms.map((room) => this.parts.directory.channel(roomOf(room))?.guildId ?? null));
    const heardAt = this.parts.session.heardAt();
    const newestId = [...rooms].sort(latestFirst)[0]?.platformMessageId;
    const since = heardAt === null ? newestId : snowflakeAt(heardAt);
    if (since === undefined) return [];
    return this.parts.directory
      .threads()
      .flatMap(({ id, lastMessageId, guildId }) => {
        const place = this.parts.directory.place(id);
        if (place === null || guildId === null || !guilds.has(guildId) || known.has(id)) return [];
        if (lastMessageId === null || !isLater(lastMessageId, since)) return [];
        return [{ ...place, lastMessageId, platformMessageId: since }];
      })
      .sort((one, other) => byAge({ id: other.lastMessageId }, { id: one.lastMessageId }))
      .slice(0, MOST_THREADS);
  }

  /** Threads came into view: fetches their recent messages. */
  noteThreads(payload: unknown): void {
    const told = fieldsOf<Discord.GatewayThreadListSyncDispatchData>(payload);
    const ids = listOf<Discord.APIChannel>(told.threads).flatMap(({ id }) => idOf(id) ?? []);
    const releases = ids.map((id) => this.parts.lanes.hold(id));
    const signal = AbortSignal.any([this.over.signal, this.stopping]);
    this.done = this.done.then(async () => {
      const rooms = signal.aborted ? [] : await this.newest(signal);
      await this.fetchAll(
        this.threadsBegun(rooms).filter((room) => ids.includes(roomOf(room))),
        signal,
      );
      for (const release of releases) release();
    });
  }

  private async newest(signal: AbortSignal): Promise<HeardRoom[]> {
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        return latestOfEach(await this.parts.newest());
      } catch (error) {
        this.parts.log.warn(
          { channel: 'discord', reason: describe(error) },
          'reading the this.newest messages failed; retrying',
        );
        await this.parts.clock.sleep(backoffMs(tries), signal);
      }
    }
    return [];
  }

  /** Guilds list the last message of each of their channels, which saves most calls. */
  private async allGuilds(signal: AbortSignal): Promise<void> {
    const told = new AbortController();
    this.guildTold = () => {
      if (this.parts.directory.awaited() === 0) told.abort();
    };
    this.guildTold();
    await this.parts.clock.sleep(GUILDS_MS, AbortSignal.any([told.signal, signal]));
    this.guildTold = () => {};
  }

  /** Also true if the last message is unknown. */
  private isBehind(room: HeardRoom): boolean {
    const last = this.parts.directory.channel(roomOf(room))?.lastMessageId ?? null;
    return last === null || isLater(last, room.platformMessageId);
  }

  private fetchMissed(room: HeardRoom, signal: AbortSignal): Promise<void> {
    const id = roomOf(room);
    return persistently(this.parts, signal, 'fetching missed messages failed', async () => {
      if (this.parts.directory.place(id) === null) {
        this.parts.directory.noteChannel(await this.parts.api.get(`/channels/${id}`, signal));
        if (!this.isBehind(room)) return;
      }
      const missed = await this.missedIn(id, room.platformMessageId, signal);
      const events = missed.flatMap(({ payload }) => this.parts.eventOf('MESSAGE_CREATE', payload) ?? []);
      for (let from = 0; from < events.length && !signal.aborted; from += PAGE) {
        await this.parts.store(events.slice(from, from + PAGE));
      }
      if (events.length === 0) return;
      this.parts.log.info(
        { channel: 'discord', room: id, messages: events.length },
        'fetched missed messages',
      );
    });
  }

  /** The messages of a room after the last stored one, oldest first. */
  private async missedIn(room: string, last: string, signal: AbortSignal): Promise<MissedMessage[]> {
    const horizon = snowflakeAt(this.parts.clock.now() - HORIZON_MS);
    const first = await this.page(room, { after: isLater(horizon, last) ? horizon : last }, signal);
    // Usually that is all. Else the rest is fetched backwards from the newest.
    const known = first.at(-1)?.id;
    if (first.length < PAGE || known === undefined) return first;
    let rest: MissedMessage[] = [];
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

  private async page(
    room: string,
    query: Record<string, string>,
    signal: AbortSignal,
  ): Promise<MissedMessage[]> {
    const told = await this.parts.api.get(`/channels/${room}/messages`, signal, {
      limit: String(PAGE),
      ...query,
    });
    if (!Array.isArray(told)) throw new Error('Discord answers with something else than messages');
    return itemsOf(told)
      .flatMap((payload) => {
        const id = idOf(fieldsOf<Discord.APIMessage>(payload).id);
        return id === undefined ? [] : [{ id, payload }];
      })
      .sort(byAge);
  }

  noteGuild() {
    return this.guildTold();
  }
  /** Resolves when nothing is under way any more. */
  idle() {
    return this.done;
  }
}

interface MissedMessage {
  id: string;
  payload: unknown;
}

/** A private thread may be listed twice: as a chat of its own, and formerly as a thread of its channel. */
function latestOfEach(rooms: readonly HeardRoom[]): HeardRoom[] {
  const latest = new Map<string, HeardRoom>();
  for (const room of [...rooms].filter(isOfDiscord).sort(latestFirst)) {
    if (!latest.has(roomOf(room))) latest.set(roomOf(room), room);
  }
  return [...latest.values()];
}

function isOfDiscord(room: HeardRoom): boolean {
  return isSnowflake(roomOf(room)) && isSnowflake(room.platformMessageId);
}

function latestFirst(one: HeardRoom, other: HeardRoom): number {
  return byAge({ id: other.platformMessageId }, { id: one.platformMessageId });
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
      const kind = await kindOf(parts, parts.directory, address, threadId, signal);
      if (kind === 'private') events.push({ kind: 'apart', from: address, threadId, to: threadId });
      isAllKnown &&= kind !== 'unknown';
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

async function kindOf(
  base: Base,
  directory: Directory,
  channel: string,
  thread: string,
  signal: AbortSignal,
): Promise<'private' | 'public' | 'gone' | 'unknown'> {
  let kind: 'private' | 'gone' | 'unknown' = 'unknown';
  await persistently(base, signal, 'looking up a Discord thread failed', async () => {
    if (directory.place(thread) !== null) return;
    try {
      directory.noteChannel(await base.api.get(`/channels/${thread}`, signal));
    } catch (error) {
      const { code } = failureOf(error);
      if (code === CODE.unknownChannel) {
        kind = 'gone';
      } else if (code === CODE.missingAccess) {
        // Access to a channel includes its threads, except private ones.
        await base.api.get(`/channels/${channel}`, signal);
        kind = 'private';
      } else {
        throw error;
      }
    }
  });
  const place = directory.place(thread);
  if (place === null) return kind;
  return place.threadId === null ? 'private' : 'public';
}
