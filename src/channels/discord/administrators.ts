/** Who manages a guild, asked of Discord and remembered for some minutes; a no only for seconds. */
import type { Clock } from '../../core/clock.js';
import type { Address } from '../../core/message.js';
import { bounded } from '../bounded.js';
import { type Api, MOST_NOTED } from './api.js';
import type { Directory } from './directory.js';
import { failureOf } from './failure.js';
import { read } from './payload.js';
import { isSnowflake } from './snowflake.js';

const KEPT_MS = 300_000;
/** Somebody may just have been made one. */
const NO_KEPT_MS = 3_000;
const NOT_FOUND = 404;

export interface Administrators {
  /** Throws when Discord cannot be asked. */
  has(chat: Address, sender: Address): Promise<boolean>;
}

export function createAdministrators(parts: {
  api: Api;
  directory: Directory;
  clock: Clock;
  token: string;
}): Administrators {
  const { api, directory, clock } = parts;
  const known = bounded<string, { askedAt: number; manages: boolean }>(MOST_NOTED);

  async function guildOf(chat: Address): Promise<string | null> {
    const channel =
      directory.channel(chat) ??
      directory.noteChannel(await api.call({ method: 'GET', path: `/channels/${chat}` }));
    return channel?.guildId ?? null;
  }

  async function rolesOf(guildId: string, sender: Address): Promise<string[] | null> {
    try {
      const member = await api.call({ method: 'GET', path: `/guilds/${guildId}/members/${sender}` });
      return read.member(member)?.roles ?? [];
    } catch (error) {
      if (failureOf(error, parts.token).status === NOT_FOUND) return null;
      throw error;
    }
  }

  async function ask(guildId: string, sender: Address): Promise<boolean> {
    const roles = await rolesOf(guildId, sender);
    if (roles === null) return false;
    const manages = directory.manages(guildId, sender, roles);
    if (manages !== null) return manages;
    directory.noteGuild(await api.call({ method: 'GET', path: `/guilds/${guildId}` }));
    return directory.manages(guildId, sender, roles) ?? false;
  }

  return {
    async has(chat, sender) {
      if (!isSnowflake(chat) || !isSnowflake(sender)) return false;
      const guildId = await guildOf(chat);
      if (guildId === null) return false;
      const key = `${guildId}/${sender}`;
      const kept = known.get(key);
      const age = kept === undefined ? Number.POSITIVE_INFINITY : clock.now() - kept.askedAt;
      if (kept !== undefined && age < (kept.manages ? KEPT_MS : NO_KEPT_MS)) return kept.manages;
      const manages = await ask(guildId, sender);
      known.set(key, { askedAt: clock.now(), manages });
      return manages;
    },
  };
}
