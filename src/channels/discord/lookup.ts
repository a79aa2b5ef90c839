/**
 * Asks Discord about a guild or a channel that the gateway told nothing of: after a session was resumed by a new process
 * it tells of none, and of a thread it may never have told.
 */
import type { Clock } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import { bounded } from '../kit/bounded.js';
import { type Api, MOST_NOTED } from './api.js';
import type { Directory } from './directory.js';
import { failureOf, isRefusal } from './failure.js';

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** More than ten minutes. What is said now should not wait for longer. */
const MOST_TRIES = 15;

/** Before the next try of anything. */
export function pauseAfter(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10));
}

export interface Retries {
  clock: Clock;
  log: Log;
  token: string;
  signal: AbortSignal;
}

/** What is refused will be refused again; anything else passes. Never rejects. */
export async function persistently(
  failed: string,
  { clock, log, token, signal }: Retries,
  act: () => Promise<void>,
): Promise<void> {
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

export interface Lookup {
  isNeeded(kind: string, room: string, guildId: string): boolean;
  /** From then on both are known, as far as Discord says. Never rejects. */
  find(room: string, guildId: string): Promise<void>;
}

export function createLookup(parts: Retries & { api: Api; directory: Directory }): Lookup {
  const { api, directory, signal } = parts;
  const asked = bounded<string, Promise<void>>(MOST_NOTED);
  const answered = bounded<string, true>(MOST_NOTED);

  const get = (path: string) => api.call({ method: 'GET', path }, { signal });

  async function findGuild(id: string): Promise<void> {
    await persistently('a server could not be asked for', parts, async () => {
      const [guild, channels] = await Promise.all([get(`/guilds/${id}`), get(`/guilds/${id}/channels`)]);
      directory.noteGuild(guild);
      for (const channel of Array.isArray(channels) ? channels : []) directory.noteChannel(channel, id);
    });
    answered.set(id, true);
  }

  return {
    isNeeded(kind, room, guildId) {
      if (directory.guildName(guildId) === null && answered.get(guildId) === undefined) return true;
      // A command says by itself where its channel belongs.
      return kind !== 'INTERACTION_CREATE' && directory.place(room) === null;
    },
    async find(room, guildId) {
      if (directory.guildName(guildId) === null) {
        const asking = asked.get(guildId) ?? findGuild(guildId);
        asked.set(guildId, asking);
        await asking;
      }
      if (directory.place(room) !== null) return;
      await persistently('nobody could say where a channel belongs', parts, async () => {
        directory.noteChannel(await get(`/channels/${room}`));
      });
      // Then it counts as a chat of its own.
      if (directory.place(room) === null) directory.noteChannel({ id: room, guild_id: guildId });
    },
  };
}
