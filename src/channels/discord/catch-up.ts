/**
 * The order of what is said, in each room by itself. A new session brings nothing of the time before it: in every room
 * where people talked, and in threads that began meanwhile, the messages after the newest stored one are fetched, and
 * stored before what is said since. Also asks once which stored threads are private.
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
import type { Session } from './session.js';

/** Work on events: one after the other in a room, rooms side by side, each when it is not held. */
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
    /** Returns what releases it again. */
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

/** Guilds are told one by one after the login; one with an outage is not told. */
const GUILDS_MS = 3_000;
/** Few at a time: replies go over the same API. */
const SIDE_BY_SIDE = 3;
/** As many messages as Discord gives at once. */
const PAGE = 100;
/** Of a room in which more was said, the newest matter most; so do threads in which something was said. */
const MOST_PAGES = 20;
const MOST_THREADS = 100;
/** Older messages are not asked for. */
const HORIZON_MS = 7 * 86_400_000;

export interface Room {
  address: Address;
  threadId: string | null;
  /** Of the last message that is stored. */
  platformMessageId: string;
}

interface CatchUpParts extends Base {
  directory: Directory;
  session: Session;
  lanes: Lanes;
  newest(): Promise<Room[]>;
  eventOf(kind: string, payload: unknown): InboundEvent | null;
  /** Resolves when the events are stored, or the channel stops. */
  store(events: InboundEvent[]): Promise<void>;
}

export function createCatchUp(parts: CatchUpParts, stopping: AbortSignal) {
  const { api, directory, session, lanes, clock, log } = parts;
  let over = new AbortController();
  let done: Promise<void> = Promise.resolve();
  let noteGuild = () => {};

  /** A session began. Ends what an earlier call began. */
  function begin(): void {
    lanes.holdAll();
    over.abort();
    over = new AbortController();
    const signal = AbortSignal.any([over.signal, stopping]);
    done = done.then(() => run(signal));
  }

  async function run(signal: AbortSignal): Promise<void> {
    const rooms = await newest(signal);
    if (rooms.length > 0) await allGuilds(signal);
    if (signal.aborted) return;
    const behind = [...rooms.filter(isBehind).sort(latestFirst), ...threadsBegun(rooms)];
    const fetched = fetchAll(behind, signal);
    lanes.releaseAll();
    await fetched;
    if (!signal.aborted) await session.complete();
  }

  /** Holds the rooms while their messages are fetched. */
  async function fetchAll(rooms: readonly Room[], signal: AbortSignal): Promise<void> {
    const left = rooms.map((room) => ({ room, release: lanes.hold(roomOf(room)) }));
    const workers = Array.from({ length: SIDE_BY_SIDE }, async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        await fetchMissed(next.room, signal);
        next.release();
      }
    });
    await Promise.all(workers);
  }

  /** Threads, and posts in forums, that began meanwhile: only in servers where people talked with us. */
  function threadsBegun(rooms: readonly Room[]): Room[] {
    const known = new Set(rooms.map(roomOf));
    const guilds = new Set(rooms.map((room) => directory.channel(roomOf(room))?.guildId ?? null));
    const heardAt = session.heardAt();
    const newestId = [...rooms].sort(latestFirst)[0]?.platformMessageId;
    const since = heardAt === null ? newestId : snowflakeAt(heardAt);
    if (since === undefined) return [];
    return directory
      .threads()
      .flatMap(({ id, lastMessageId, guildId }) => {
        const place = directory.place(id);
        if (place === null || guildId === null || !guilds.has(guildId) || known.has(id)) return [];
        if (lastMessageId === null || !isLater(lastMessageId, since)) return [];
        return [{ ...place, lastMessageId, platformMessageId: since }];
      })
      .sort((one, other) => byAge({ id: other.lastMessageId }, { id: one.lastMessageId }))
      .slice(0, MOST_THREADS);
  }

  /** Threads came into view: what was said in them lately is fetched. */
  function noteThreads(payload: unknown): void {
    const told = fieldsOf<Discord.GatewayThreadListSyncDispatchData>(payload);
    const ids = listOf<Discord.APIChannel>(told.threads).flatMap(({ id }) => idOf(id) ?? []);
    const releases = ids.map((id) => lanes.hold(id));
    const signal = AbortSignal.any([over.signal, stopping]);
    done = done.then(async () => {
      const rooms = signal.aborted ? [] : await newest(signal);
      await fetchAll(
        threadsBegun(rooms).filter((room) => ids.includes(roomOf(room))),
        signal,
      );
      for (const release of releases) release();
    });
  }

  async function newest(signal: AbortSignal): Promise<Room[]> {
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        return latestOfEach(await parts.newest());
      } catch (error) {
        log.warn(
          { channel: 'discord', reason: describe(error) },
          'reading the newest messages failed; retrying',
        );
        await clock.sleep(backoffMs(tries), signal);
      }
    }
    return [];
  }

  /** They tell the last message of each of their channels, which spares most calls. */
  async function allGuilds(signal: AbortSignal): Promise<void> {
    const told = new AbortController();
    noteGuild = () => {
      if (directory.awaited() === 0) told.abort();
    };
    noteGuild();
    await clock.sleep(GUILDS_MS, AbortSignal.any([told.signal, signal]));
    noteGuild = () => {};
  }

  /** Also where nobody has told us. */
  function isBehind(room: Room): boolean {
    const last = directory.channel(roomOf(room))?.lastMessageId ?? null;
    return last === null || isLater(last, room.platformMessageId);
  }

  function fetchMissed(room: Room, signal: AbortSignal): Promise<void> {
    const id = roomOf(room);
    return persistently(parts, signal, 'fetching missed messages failed', async () => {
      if (directory.place(id) === null) {
        directory.noteChannel(await api.get(`/channels/${id}`, signal));
        if (!isBehind(room)) return;
      }
      const missed = await missedIn(id, room.platformMessageId, signal);
      const events = missed.flatMap(({ payload }) => parts.eventOf('MESSAGE_CREATE', payload) ?? []);
      for (let from = 0; from < events.length && !signal.aborted; from += PAGE) {
        await parts.store(events.slice(from, from + PAGE));
      }
      if (events.length === 0) return;
      log.info({ channel: 'discord', room: id, messages: events.length }, 'fetched missed messages');
    });
  }

  /** The messages of a room after the last one that is stored, oldest first. */
  async function missedIn(room: string, last: string, signal: AbortSignal): Promise<Found[]> {
    const horizon = snowflakeAt(clock.now() - HORIZON_MS);
    const first = await page(room, { after: isLater(horizon, last) ? horizon : last }, signal);
    // Mostly that is all. Else the rest is fetched from the newest backwards.
    const known = first.at(-1)?.id;
    if (first.length < PAGE || known === undefined) return first;
    let rest: Found[] = [];
    for (let pages = 0; pages < MOST_PAGES; pages += 1) {
      const before = rest[0]?.id;
      const earlier = await page(room, before === undefined ? {} : { before }, signal);
      const unknown = earlier.filter(({ id }) => isLater(id, known));
      rest = [...unknown, ...rest];
      if (unknown.length < PAGE) return [...first, ...rest];
    }
    log.warn({ channel: 'discord', room }, 'too many missed messages; fetched only the newest');
    return [...first, ...rest];
  }

  async function page(room: string, query: Record<string, string>, signal: AbortSignal): Promise<Found[]> {
    const told = await api.get(`/channels/${room}/messages`, signal, { limit: String(PAGE), ...query });
    if (!Array.isArray(told)) throw new Error('Discord answers with something else than messages');
    return itemsOf(told)
      .flatMap((payload) => {
        const id = idOf(fieldsOf<Discord.APIMessage>(payload).id);
        return id === undefined ? [] : [{ id, payload }];
      })
      .sort(byAge);
  }

  return {
    begin,
    noteThreads,
    /** A guild was told. */
    noteGuild: () => noteGuild(),
    /** Resolves when nothing is under way any more. */
    idle: () => done,
  };
}

interface Found {
  id: string;
  payload: unknown;
}

/** A private thread may be there twice: as a chat of its own, and from before as a thread of its channel. */
function latestOfEach(rooms: readonly Room[]): Room[] {
  const latest = new Map<string, Room>();
  for (const room of [...rooms].filter(isOfDiscord).sort(latestFirst)) {
    if (!latest.has(roomOf(room))) latest.set(roomOf(room), room);
  }
  return [...latest.values()];
}

function isOfDiscord(room: Room): boolean {
  return isSnowflake(roomOf(room)) && isSnowflake(room.platformMessageId);
}

function latestFirst(one: Room, other: Room): number {
  return byAge({ id: other.platformMessageId }, { id: one.platformMessageId });
}

/** In the channel's state: every stored thread was asked about. */
const ASKED = 'threads';

/**
 * Private threads that older versions stored as threads of their channel become chats of their own. Never rejects; what
 * could not be found out is asked again at the next start.
 */
export async function tellPrivateThreads(
  parts: Pick<CatchUpParts, 'api' | 'clock' | 'log' | 'directory' | 'newest' | 'store'>,
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
        // Whoever may see a channel may see its threads, but for private ones.
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
