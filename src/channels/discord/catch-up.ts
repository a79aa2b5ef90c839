/**
 * What was said while nobody listened. A new session of the gateway brings nothing of the time before it: in every room
 * where people talked, it is fetched behind the last message that is stored, and handed in before what is said since.
 */
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { Address, InboundEvent } from '../../core/message.js';
import type { Api } from './api.js';
import type { Directory } from './directory.js';
import { failureOf, isRefusal } from './failure.js';
import type { Intake } from './intake.js';
import { missedIn, PAGE } from './missed.js';
import { roomOf } from './outbound.js';
import { byAge, isLater, isSnowflake } from './snowflake.js';

/** Guilds are told one by one after the login; one with an outage is not told. */
const GUILDS_MS = 3_000;
/** Few at a time: replies go over the same API. */
const SIDE_BY_SIDE = 3;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** More than ten minutes. What is said now should not wait for longer. */
const MOST_TRIES = 15;

export interface Room {
  address: Address;
  threadId: string | null;
  platformMessageId: string;
}

export interface CatchUp {
  /** A session began. Ends what an earlier call began. */
  begin(): void;
  /** A guild was told. */
  look(): void;
  /** Sees to it that the directory knows a channel. Never rejects. */
  lookUp(room: string, guildId: string): Promise<void>;
  /** Resolves when nothing is under way any more. */
  idle(): Promise<void>;
}

export interface CatchUpParts {
  api: Api;
  token: string;
  directory: Directory;
  intake: Pick<Intake, 'holdAll' | 'resume' | 'hold' | 'release'>;
  newest(): Promise<Room[]>;
  inbound(kind: string, payload: unknown): InboundEvent | null;
  /** Resolves when they are stored. */
  handIn(events: InboundEvent[]): Promise<void>;
  clock: Clock;
  log: Log;
  /** Ends all of it. */
  signal: AbortSignal;
}

export function createCatchUp(parts: CatchUpParts): CatchUp {
  const { api, token, directory, intake, clock, log } = parts;
  let current = { over: new AbortController(), done: Promise.resolve() };
  let onGuild = () => {};

  function begin(): void {
    intake.holdAll();
    const before = current;
    before.over.abort();
    const over = new AbortController();
    const abort = () => over.abort();
    parts.signal.addEventListener('abort', abort, { once: true });
    if (parts.signal.aborted) abort();
    const done = before.done
      .then(() => run(over.signal))
      .finally(() => parts.signal.removeEventListener('abort', abort));
    current = { over, done };
  }

  async function run(signal: AbortSignal): Promise<void> {
    const rooms = await newest(signal);
    if (rooms.length > 0) await allGuilds(signal);
    if (signal.aborted) return;
    const behind = rooms.filter(isBehind).sort((one, other) => byAge(lastOf(other), lastOf(one)));
    for (const room of behind) intake.hold(roomOf(room));
    intake.resume();
    const lanes = Array.from({ length: SIDE_BY_SIDE }, async () => {
      for (let room = behind.shift(); room !== undefined; room = behind.shift()) {
        await takeIn(room, signal);
        intake.release(roomOf(room));
      }
    });
    await Promise.all(lanes);
  }

  async function newest(signal: AbortSignal): Promise<Room[]> {
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        const rooms = await parts.newest();
        return rooms.filter((room) => isSnowflake(roomOf(room)) && isSnowflake(room.platformMessageId));
      } catch (error) {
        const reason = describe(error);
        log.warn({ channel: 'discord', reason }, 'the store does not say what it has; asking again');
        await clock.sleep(pauseAfter(tries), signal);
      }
    }
    return [];
  }

  /** With them comes what their channels' last messages are, which spares most questions. */
  async function allGuilds(signal: AbortSignal): Promise<void> {
    const told = new AbortController();
    const end = () => told.abort();
    onGuild = () => {
      if (directory.awaited() === 0) end();
    };
    onGuild();
    signal.addEventListener('abort', end, { once: true });
    await clock.sleep(GUILDS_MS, told.signal);
    signal.removeEventListener('abort', end);
    onGuild = () => {};
  }

  /** Also where nobody has told us. */
  function isBehind(room: Room): boolean {
    const last = directory.channel(roomOf(room))?.lastMessageId ?? null;
    return last === null || isLater(last, room.platformMessageId);
  }

  function takeIn(room: Room, signal: AbortSignal): Promise<void> {
    const id = roomOf(room);
    return persistently('what was missed in a channel could not be fetched', signal, async () => {
      if (directory.place(id) === null) {
        await askOf(id, signal);
        if (!isBehind(room)) return;
      }
      const ask = { last: room.platformMessageId, now: clock.now(), signal };
      const missed = await missedIn({ api, log }, id, ask);
      const events = missed.flatMap((payload) => parts.inbound('MESSAGE_CREATE', payload) ?? []);
      for (let from = 0; from < events.length && !signal.aborted; from += PAGE) {
        await parts.handIn(events.slice(from, from + PAGE));
      }
      if (events.length > 0) {
        log.info({ channel: 'discord', room: id, messages: events.length }, 'took in what was missed');
      }
    });
  }

  async function askOf(room: string, signal: AbortSignal): Promise<void> {
    directory.noteChannel(await api.call({ method: 'GET', path: `/channels/${room}` }, { signal }));
  }

  /** What is refused will be refused again; anything else passes. */
  async function persistently(failed: string, signal: AbortSignal, act: () => Promise<void>): Promise<void> {
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        return await act();
      } catch (error) {
        if (signal.aborted) return;
        const failure = failureOf(error, token);
        const { reason } = failure;
        if (isRefusal(failure) || tries >= MOST_TRIES) {
          log.warn({ channel: 'discord', reason }, `${failed}; going on without`);
          return;
        }
        log.debug({ channel: 'discord', reason }, `${failed} yet; trying again`);
        await clock.sleep(failure.retryAfterMs ?? pauseAfter(tries), signal);
      }
    }
  }

  return {
    begin,
    look: () => onGuild(),
    async lookUp(room, guildId) {
      const { signal } = parts;
      await persistently('nobody could say where a channel belongs', signal, () => askOf(room, signal));
      // Then it counts as a chat of its own.
      if (directory.place(room) === null) directory.noteChannel({ id: room, guild_id: guildId });
    },
    idle: async () => {
      await current.done;
    },
  };
}

function lastOf({ platformMessageId }: Room): { id: string } {
  return { id: platformMessageId };
}

function pauseAfter(tries: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(tries, 10));
}
