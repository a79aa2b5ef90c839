/**
 * Step 1 of the route: decides who may talk. Pure. Messages from anybody who may not are neither stored nor shown to a
 * model.
 */
import type { ChatId } from '../core/ids.js';

/** `access` of the configuration, with the channel's own overrides already applied. */
export interface AccessRules {
  direct: 'pairing' | 'open' | 'closed';
  groups: 'listed' | 'open' | 'closed';
  chats: ChatId[];
  owners: ChatId[];
  controlChats: ChatId[];
  requireMention: boolean;
}

/** What was approved at run time (`coterie pair approve`). */
export interface Standing {
  chat: boolean;
  sender: boolean;
  owner: boolean;
}

export type Entry =
  | 'enter'
  /** The sender is unknown: offer a pairing code. */
  | 'pair'
  /** The group is not listed: if the bot was addressed there, tell the operator once. */
  | 'unlisted'
  | 'stay-out';

/**
 * `chatIds` are all ids of the chat: its own and the one that the platform uses now. A listing of either counts, so
 * access survives a group's migration.
 */
export function decideEntry(
  rules: AccessRules,
  chat: { kind: 'direct' | 'group'; chatIds: ChatId[]; senderId: ChatId },
  standing: Standing,
): Entry {
  const listed = chat.chatIds.some((id) => rules.chats.includes(id) || rules.controlChats.includes(id));
  if (chat.kind === 'group') {
    if (rules.groups === 'closed') return 'stay-out';
    return rules.groups === 'open' || listed || standing.chat ? 'enter' : 'unlisted';
  }
  if (listed || isKnown(rules, chat.senderId, standing) || rules.direct === 'open') return 'enter';
  return rules.direct === 'pairing' ? 'pair' : 'stay-out';
}

/** Somebody has said that this person may talk. */
export function isKnown(rules: AccessRules, senderId: ChatId, standing: Omit<Standing, 'chat'>): boolean {
  return standing.sender || isOwner(rules, senderId, standing) || rules.chats.includes(senderId);
}

export function isOwner(rules: AccessRules, senderId: ChatId, standing: { owner: boolean }): boolean {
  return standing.owner || rules.owners.includes(senderId);
}
