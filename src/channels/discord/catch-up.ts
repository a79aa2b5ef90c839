/**
 * What was said while nobody listened. A new session of the gateway brings nothing of the time before it: in every room
 * where people talked, and in threads that were begun meanwhile, the messages behind the last one that is stored are
 * fetched, and stored before what is said since.
 */
import { describe } from '../../core/errors.js';
import type { Address, InboundEvent } from '../../core/message.js';
import { backoffMs } from '../kit/supervise.js';
import type { Base } from './api.js';
import type { Directory } from './directory.js';
import type { Intake } from './intake.js';
import { persistently } from './lookup.js';
import { roomOf } from './outbound.js';
import { read } from './payload.js';
import type { Queue } from './queue.js';
import type { Session } from './session.js';
import { byAge, isLater, isSnowflake, snowflakeAt } from './snowflake.js';

/** Guilds are told one by one after the login; one with an outage is not told. */
const GUILDS_MS = 3_000;
/** Few at a time: replies go over the same API. */
const SIDE_BY_SIDE = 3;
/** As many messages as Discord gives at once. */
const PAGE = 100;
/** Of a room in which more was said, the newest matter most. */
const MOST_PAGES = 20;
/** Of threads in which something was said and nobody of us has heard anything, the newest matter most. */
const MOST_THREADS = 100;
/** What is older is not asked for. */
const HORIZON_MS = 7 * 86_400_000;

export interface Room {
  address: Address;
  threadId: string | null;
  /** Of the last message that is stored. */
  platformMessageId: string;
}

interface CatchUpParts extends Base {
  directory: Directory;
  intake: Intake;
  queue: Queue;
  session: Session;
  newest(): Promise<Room[]>;
  eventOf(packet: { kind: string; payload: unknown }): InboundEvent | null;
}

export function createCatchUp(parts: CatchUpParts, stopping: AbortSignal) {
  const { api, directory, intake, queue, session, clock, log } = parts;
  let current = { over: new AbortController(), done: Promise.resolve() };
  let noteGuild = () => {};

  function begin(): void {
    intake.holdAll();
    const before = current;
    before.over.abort();
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, stopping]);
    current = { over, done: before.done.then(() => run(signal)) };
  }

  async function run(signal: AbortSignal): Promise<void> {
    const rooms = await newest(signal);
    if (rooms.length > 0) await allGuilds(signal);
    if (signal.aborted) return;
    const behind = [...rooms.filter(isBehind).sort(latestFirst), ...threadsBegun(rooms)];
    for (const room of behind) intake.hold(roomOf(room));
    intake.resume();
    await takeInAll(behind, signal);
    if (!signal.aborted) session.complete();
  }

  /** Releases each that is held. */
  async function takeInAll(rooms: readonly Room[], signal: AbortSignal): Promise<void> {
    const left = [...rooms];
    const lanes = Array.from({ length: SIDE_BY_SIDE }, async () => {
      for (let room = left.shift(); room !== undefined; room = left.shift()) {
        await takeIn(room, signal);
        intake.release(roomOf(room));
      }
    });
    await Promise.all(lanes);
  }

  /**
   * Threads, and posts in forums, of which nothing is stored and in which something was said while nobody listened: only in
   * servers where people talked with us.
   */
  function threadsBegun(rooms: readonly Room[]): Room[] {
    const known = new Set(rooms.map(roomOf));
    const guilds = new Set(rooms.map((room) => directory.channel(roomOf(room))?.guildId ?? null));
    const heardAt = session.heardAt();
    const newestOf = rooms
      .map(({ platformMessageId: id }) => ({ id }))
      .sort(byAge)
      .at(-1)?.id;
    const since = heardAt === null ? newestOf : snowflakeAt(heardAt);
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

  /** We may see threads that we could not see before: what was said in them lately is fetched. */
  function noteThreads(payload: unknown): void {
    const ids = (read.threads(payload)?.threads ?? []).map(({ id }) => id);
    const { over, done } = current;
    const signal = AbortSignal.any([over.signal, stopping]);
    for (const id of ids) intake.hold(id);
    const fetched = done.then(async () => {
      const rooms = signal.aborted ? [] : await newest(signal);
      const begun = threadsBegun(rooms).filter((room) => ids.includes(roomOf(room)));
      for (const room of begun) intake.hold(roomOf(room));
      await takeInAll(begun, signal);
      for (const id of ids) intake.release(id);
    });
    current = { over, done: fetched };
  }

  async function newest(signal: AbortSignal): Promise<Room[]> {
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        return latestOfEach(await parts.newest());
      } catch (error) {
        const reason = describe(error);
        log.warn({ channel: 'discord', reason }, 'the store does not say what it has; asking again');
        await clock.sleep(backoffMs(tries), signal);
      }
    }
    return [];
  }

  /** With them comes what their channels' last messages are, which spares most questions. */
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

  function takeIn(room: Room, signal: AbortSignal): Promise<void> {
    const id = roomOf(room);
    const failed = 'what was missed in a channel could not be fetched';
    return persistently(parts, signal, failed, async () => {
      if (directory.place(id) === null) {
        directory.noteChannel(await api.get(`/channels/${id}`, signal));
        if (!isBehind(room)) return;
      }
      const missed = await missedIn(id, room.platformMessageId, signal);
      const events = missed.flatMap(
        ({ payload }) => parts.eventOf({ kind: 'MESSAGE_CREATE', payload }) ?? [],
      );
      for (let from = 0; from < events.length && !signal.aborted; from += PAGE) {
        await queue.addMissed(events.slice(from, from + PAGE));
      }
      if (events.length > 0) {
        log.info({ channel: 'discord', room: id, messages: events.length }, 'took in what was missed');
      }
    });
  }

  /** The messages of a room behind the last one that is stored, oldest first. */
  async function missedIn(room: string, last: string, signal: AbortSignal): Promise<Found[]> {
    const horizon = snowflakeAt(clock.now() - HORIZON_MS);
    const first = await page(room, { after: isLater(horizon, last) ? horizon : last }, signal);
    // Mostly that is all. Else the rest is fetched from the newest backwards, up to what is there already.
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
    log.warn({ channel: 'discord', room }, 'more was missed in a channel than is fetched; the newest is');
    return [...first, ...rest];
  }

  async function page(room: string, query: Record<string, string>, signal: AbortSignal): Promise<Found[]> {
    const path = `/channels/${room}/messages`;
    const told = await api.get(path, signal, { limit: String(PAGE), ...query });
    if (!Array.isArray(told)) throw new Error('Discord answers with something else than messages');
    const found = told.flatMap((payload: unknown) => {
      const id = read.answer(payload)?.id;
      return id === undefined ? [] : [{ id, payload }];
    });
    return found.sort(byAge);
  }

  return {
    /** A session began. Ends what an earlier call began. */
    begin,
    /** Threads came into view. */
    noteThreads,
    /** A guild was told. */
    noteGuild: () => noteGuild(),
    /** Resolves when nothing is under way any more. */
    idle: () => current.done,
  };
}

interface Found {
  id: string;
  payload: unknown;
}

/** A private thread may be there twice: as a chat of its own, and from before as a thread of its channel. */
function latestOfEach(rooms: readonly Room[]): Room[] {
  const latest = new Map<string, Room>();
  for (const room of rooms) {
    if (!isSnowflake(roomOf(room)) || !isSnowflake(room.platformMessageId)) continue;
    const known = latest.get(roomOf(room));
    if (known === undefined || isLater(room.platformMessageId, known.platformMessageId)) {
      latest.set(roomOf(room), room);
    }
  }
  return [...latest.values()];
}

function latestFirst(one: Room, other: Room): number {
  return byAge({ id: other.platformMessageId }, { id: one.platformMessageId });
}
