/**
 * Who may talk, as a pure decision for step 1: nothing of what stays outside is stored or reaches a model.
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
  /** An unknown sender: offer a pairing code. */
  | 'pair'
  /** A group that nobody listed: if we were called there, the operator is told once. */
  | 'unlisted'
  | 'stay-out';

/**
 * `chatIds` are all ids of the chat: its own and the one the platform uses now, so that a listing of either
 * counts after a group has moved.
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
  const known = listed || standing.sender || isOwner(rules, chat.senderId, standing);
  if (known || rules.chats.includes(chat.senderId) || rules.direct === 'open') return 'enter';
  return rules.direct === 'pairing' ? 'pair' : 'stay-out';
}

export function isOwner(rules: AccessRules, senderId: ChatId, standing: { owner: boolean }): boolean {
  return standing.owner || rules.owners.includes(senderId);
}
