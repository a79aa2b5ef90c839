/** Who may do what in a guild and in a channel of it, as Discord computes it. */
import type { Overwrite } from './discord-words.js';

export const PERMISSION = {
  administrator: 1n << 3n,
  addReactions: 1n << 6n,
  viewChannel: 1n << 10n,
  sendMessages: 1n << 11n,
  manageMessages: 1n << 13n,
  embedLinks: 1n << 14n,
  attachFiles: 1n << 15n,
  readMessageHistory: 1n << 16n,
  manageWebhooks: 1n << 29n,
  useApplicationCommands: 1n << 31n,
  sendMessagesInThreads: 1n << 38n,
  sendVoiceMessages: 1n << 46n,
} as const;

const ALL = (1n << 53n) - 1n;

/** What @everyone may in a new guild, as far as anything here asks for it. */
export const EVERYONE =
  PERMISSION.addReactions |
  PERMISSION.viewChannel |
  PERMISSION.sendMessages |
  PERMISSION.embedLinks |
  PERMISSION.attachFiles |
  PERMISSION.readMessageHistory |
  PERMISSION.useApplicationCommands |
  PERMISSION.sendMessagesInThreads |
  PERMISSION.sendVoiceMessages;

interface Rights {
  guildId: string;
  ownerId: string;
  permissionsOfRole(roleId: string): bigint;
}

export function permissionsOf(
  userId: string,
  memberRoles: string[],
  { guildId, ownerId, permissionsOfRole }: Rights,
  overwrites: Overwrite[] = [],
): bigint {
  if (userId === ownerId) return ALL;
  let held = permissionsOfRole(guildId);
  for (const role of memberRoles) held |= permissionsOfRole(role);
  if ((held & PERMISSION.administrator) !== 0n) return ALL;
  const apply = (chosen: Overwrite[]) => {
    for (const { deny = 0n } of chosen) held &= ~deny;
    for (const { allow = 0n } of chosen) held |= allow;
  };
  apply(overwrites.filter(({ id }) => id === guildId));
  apply(overwrites.filter(({ id }) => memberRoles.includes(id)));
  apply(overwrites.filter(({ id }) => id === userId));
  return held;
}
