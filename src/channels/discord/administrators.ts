/** Who manages a guild, asked of Discord and remembered for some minutes; a no only for seconds. */
import type { Address } from '../../core/message.js';
import { createLookupCache, isAdministrator as isYes } from '../kit/lookup-cache.js';
import { type Base, MOST_NOTED } from './api.js';
import type { Directory } from './directory.js';
import { failureOf } from './failure.js';
import { read } from './payload.js';
import { isSnowflake } from './snowflake.js';

const NOT_FOUND = 404;

/** Rejects when Discord cannot be asked. */
export function createAdministrators({ api, clock }: Base, directory: Directory) {
  /** By guild and person. */
  const asked = createLookupCache(ask, { most: MOST_NOTED, clock });

  async function rolesOf(guildId: string, sender: Address): Promise<string[] | null> {
    try {
      return read.member(await api.get(`/guilds/${guildId}/members/${sender}`))?.roles ?? [];
    } catch (error) {
      if (failureOf(error).status === NOT_FOUND) return null;
      throw error;
    }
  }

  async function ask(key: string): Promise<boolean> {
    const [guildId = '', sender = ''] = key.split('/');
    const roles = await rolesOf(guildId, sender);
    if (roles === null) return false;
    const manages = directory.manages(guildId, sender, roles);
    if (manages !== null) return manages;
    directory.noteGuild(await api.get(`/guilds/${guildId}`));
    return directory.manages(guildId, sender, roles) ?? false;
  }

  return async function isAdministrator(chat: Address, sender: Address): Promise<boolean> {
    if (!isSnowflake(chat) || !isSnowflake(sender)) return false;
    const channel = directory.channel(chat) ?? directory.noteChannel(await api.get(`/channels/${chat}`));
    const guildId = channel?.guildId ?? null;
    if (guildId === null) return false;
    return isYes(asked, `${guildId}/${sender}`, (manages) => manages);
  };
}
