/** Who manages a guild, asked of Discord and remembered for some minutes; a no only for seconds. */
import type { Clock } from '../../core/clock.js';
import type { Address } from '../../core/message.js';
import { createAsked, isAdministrator } from '../kit/asked.js';
import type { Api } from './api.js';
import type { Directory } from './directory.js';
import { failureOf } from './failure.js';
import { read } from './payload.js';
import { isSnowflake } from './snowflake.js';

/** Of how many people in guilds it is remembered. */
const MOST = 1_000;
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
  /** By guild and person. */
  const asked = createAsked(ask, { most: MOST, clock });

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

  async function ask(key: string): Promise<boolean> {
    const [guildId = '', sender = ''] = key.split('/');
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
      return isAdministrator(asked, `${guildId}/${sender}`, (manages) => manages);
    },
  };
}
