/**
 * Asks Discord about a guild or a channel that the gateway told nothing of: after a session was resumed by a new process
 * it tells of none, and of a thread it may never have told.
 */
import { bounded } from '../kit/bounded.js';
import { backoffMs } from '../kit/supervise.js';
import { type Base, MOST_NOTED } from './api.js';
import type { Directory } from './directory.js';
import { failureOf, isRefusal } from './failure.js';

/** More than ten minutes. What is said now should not wait for longer. */
const MOST_TRIES = 15;

/** What is refused will be refused again; anything else passes. Never rejects. */
export async function persistently(
  { clock, log }: Base,
  signal: AbortSignal,
  failed: string,
  act: () => Promise<void>,
): Promise<void> {
  for (let tries = 0; !signal.aborted; tries += 1) {
    try {
      return await act();
    } catch (error) {
      if (signal.aborted) return;
      const failure = failureOf(error);
      const { reason } = failure;
      if (isRefusal(failure) || tries >= MOST_TRIES) {
        log.warn({ channel: 'discord', reason }, `${failed}; going on without`);
        return;
      }
      log.debug({ channel: 'discord', reason }, `${failed} yet; trying again`);
      await clock.sleep(Math.max(failure.retryAfterMs ?? 0, backoffMs(tries)), signal);
    }
  }
}

export type Lookup = ReturnType<typeof createLookup>;

export function createLookup(base: Base, directory: Directory, signal: AbortSignal) {
  const { api } = base;
  const asked = bounded<string, Promise<void>>(MOST_NOTED);
  const answered = bounded<string, true>(MOST_NOTED);

  async function findGuild(id: string): Promise<void> {
    await persistently(base, signal, 'a server could not be looked up', async () => {
      const [guild, channels] = await Promise.all([
        api.get(`/guilds/${id}`, signal),
        api.get(`/guilds/${id}/channels`, signal),
      ]);
      directory.noteGuild(guild);
      for (const channel of Array.isArray(channels) ? channels : []) directory.noteChannel(channel, id);
    });
    answered.set(id, true);
  }

  return {
    isNeeded(kind: string, room: string, guildId: string): boolean {
      if (directory.guildName(guildId) === null && answered.get(guildId) === undefined) return true;
      // A command says by itself where its channel belongs.
      return kind !== 'INTERACTION_CREATE' && directory.place(room) === null;
    },
    /** From then on both are known, as far as Discord says. Never rejects. */
    async find(room: string, guildId: string): Promise<void> {
      if (directory.guildName(guildId) === null) {
        const asking = asked.get(guildId) ?? findGuild(guildId);
        asked.set(guildId, asking);
        await asking;
      }
      if (directory.place(room) !== null) return;
      await persistently(base, signal, 'a channel could not be looked up', async () => {
        directory.noteChannel(await api.get(`/channels/${room}`, signal));
      });
      // Then it counts as a chat of its own.
      if (directory.place(room) === null) directory.noteChannel({ id: room, guild_id: guildId });
    },
  };
}
