/** The session at Discord's gateway, and when a new one may begin. It outlives the process. */
import { createHash } from 'node:crypto';
import type { SessionInfo } from '@discordjs/ws';
import * as z from 'zod';
import type { ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { Address } from '../../core/message.js';
import type { Identity } from './directory.js';
import { LONG_WAIT_MS } from './failure.js';

/** One event of the gateway. Numbers increase within a session. */
export interface Packet {
  kind: string;
  payload: unknown;
  sequence: number;
  isReplay: boolean;
}

const SESSION = 'session';
/** How often the session is saved while nothing is stored. Need not be exact: duplicates are stored once. */
const KEEP_EVERY_MS = 300_000;

const keptSession = z.object({
  /** A session belongs to a token, of which only a hash is kept. */
  tokenHash: z.string(),
  id: z.string(),
  resumeUrl: z.string(),
  sequence: z.int(),
  heardAt: z.number().nullish(),
  me: z.object({
    id: z.string(),
    name: z.string(),
    username: z.string().exactOptional(),
    applicationId: z.string(),
  }),
});

export type GatewaySession = ReturnType<typeof createSession>;

async function storedSession(state: ChannelState) {
  const text = (await state.get([SESSION])).get(SESSION);
  return text === undefined ? undefined : keptSession.safeParse(JSON.parse(text)).data;
}

/** A stored cursor is `session/sequence`; that of another session says nothing. */
function reachedIn(cursor: string | null, id: string, sequence: number): number {
  const [session, reached] = (cursor ?? '').split('/');
  return session === id ? Math.max(Number(reached), sequence) : sequence;
}

/** The sequence up to which all events are stored, once `stored` are, too. */
function storedUpTo(info: SessionInfo, pending: ReadonlySet<Packet>, stored: readonly Packet[] = []): number {
  for (const packet of pending) if (!stored.includes(packet)) return packet.sequence - 1;
  return info.sequence;
}

export function createSession(
  { clock, log }: { clock: Clock; log: Log },
  state: ChannelState,
  storedCursor: (account: Address) => Promise<string | null>,
  identity: Identity,
  token: string,
) {
  const tokenHash = createHash('sha256').update(token).digest('hex');
  let info: SessionInfo | null = null;
  /** Until missed messages are stored, the next process must not resume this session. */
  let isComplete = false;
  let heardAt: number | null = null;
  let keptAt = 0;
  /** Events received but not yet stored, in order. */
  const pending = new Set<Packet>();

  /** Saves what the next process needs. Never rejects. */
  async function keep(): Promise<void> {
    const me = identity.known();
    if (info === null || !isComplete || me === null) return;
    keptAt = clock.now();
    if (pending.size === 0) heardAt = keptAt;
    const { sessionId: id, resumeURL: resumeUrl } = info;
    const value = JSON.stringify({
      tokenHash,
      id,
      resumeUrl,
      sequence: storedUpTo(info, pending),
      heardAt,
      me,
    });
    await state.set(new Map([[SESSION, value]])).catch((error) => {
      log.warn({ channel: 'discord', reason: describe(error) }, 'saving the Discord session failed');
    });
  }

  return {
    info: () => info,
    /** Loads the previous process's session, if it belongs to this bot. */
    async load(): Promise<void> {
      const found = await storedSession(state);
      if (found?.tokenHash !== tokenHash) return;
      const { id, resumeUrl, me } = found;
      const sequence = reachedIn(await storedCursor(me.id), id, found.sequence);
      info = { sessionId: id, resumeURL: resumeUrl, sequence, shardId: 0, shardCount: 1 };
      isComplete = true;
      heardAt = found.heardAt == null ? null : Math.min(found.heardAt, clock.now());
      identity.restore(me);
    },
    /** As the library reports it; null: it cannot be resumed. */
    update(next: SessionInfo | null): void {
      if (next !== null && next.sessionId === info?.sessionId) {
        info.sequence = next.sequence;
        return;
      }
      info = next && { ...next };
      isComplete = false;
      pending.clear();
    },
    /** Everything missed before this session is stored. */
    async complete(): Promise<void> {
      isComplete = info !== null;
      await keep();
    },
    /** Time up to which everything is stored; null: unknown. */
    heardAt: () => heardAt,
    async beat(): Promise<void> {
      if (clock.now() - keptAt >= KEEP_EVERY_MS) await keep();
    },
    keep,
    came: (packet: Packet) => void pending.add(packet),
    /** They are stored, or hold nothing to store. */
    done(packets: readonly Packet[]): void {
      for (const packet of packets) pending.delete(packet);
    },
    /** Stored with a batch: the next process resumes from there. */
    cursorAfter: (packets: readonly Packet[]): string | undefined =>
      info === null ? undefined : `${info.sessionId}/${storedUpTo(info, pending, packets)}`,
  };
}

const IDENTIFIES = 'identifies';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const LEAST_BETWEEN_MS = 5_000;
/** Each session beyond this number within an hour doubles the time between two. */
const USUAL_IN_AN_HOUR = 6;
const MOST_BETWEEN_MS = 120_000;
/** From this number per day, the time between two is `BETWEEN_AFTER_MANY_MS`. */
const USUAL_IN_A_DAY = 50;
const BETWEEN_AFTER_MANY_MS = 15 * 60_000;

/** Pause before a session, across restarts: Discord resets a bot's token after a thousand a day. */
export async function identifyPauseMs({ clock, log }: Timing, state: ChannelState): Promise<number> {
  const today = await identifiesToday(clock, state);
  const lately = today.filter((at) => clock.now() - at < HOUR_MS).length;
  const betweenMs =
    today.length >= USUAL_IN_A_DAY
      ? BETWEEN_AFTER_MANY_MS
      : Math.min(MOST_BETWEEN_MS, LEAST_BETWEEN_MS * 2 ** Math.max(0, lately - USUAL_IN_AN_HOUR));
  const pauseMs = (today.at(-1) ?? Number.NEGATIVE_INFINITY) + betweenMs - clock.now();
  if (pauseMs >= LONG_WAIT_MS) {
    log.warn(
      { channel: 'discord', sessions: today.length, seconds: Math.round(pauseMs / 1000) },
      'too many Discord sessions today; waiting, or Discord would reset the token',
    );
  }
  return Math.max(0, pauseMs);
}

/** Counts a session before it begins, even if its process ends right after. Never rejects. */
export async function countIdentify({ clock, log }: Timing, state: ChannelState): Promise<void> {
  try {
    const today = await identifiesToday(clock, state);
    await state.set(new Map([[IDENTIFIES, JSON.stringify([...today, clock.now()])]]));
  } catch (error) {
    log.warn({ channel: 'discord', reason: describe(error) }, 'counting a Discord session failed');
  }
}

interface Timing {
  clock: Clock;
  log: Log;
}

async function identifiesToday(clock: Clock, state: ChannelState): Promise<number[]> {
  const text = (await state.get([IDENTIFIES])).get(IDENTIFIES) ?? '[]';
  const times = z.array(z.number()).parse(JSON.parse(text));
  // A time in the future was written by a wrong clock.
  return times.filter((at) => at <= clock.now() && clock.now() - at < DAY_MS);
}
