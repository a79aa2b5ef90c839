/**
 * Drafts: what a persona is writing, shown in a private chat as no message yet, with a button to stop it. Where
 * Telegram does not take one, this process tries none again.
 */
import { createHash } from 'node:crypto';
import type { Part, Recipient, SendOptions } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import { bounded } from '../kit/bounded.js';
import type { Bot } from './bots.js';
import { type Failure, isLockedOut, isMethodUnknown, isNotThere } from './failure.js';
import { sendRequest } from './outbound.js';

const MOST_CHATS = 10_000;

export function createDrafts(log: Log, linkPreviews: boolean) {
  let isKnownToServer = true;
  /** By bot and chat. */
  const refused = bounded<string, true>(MOST_CHATS);

  /** Whether this bot has drafts in that chat; where another may have, the failure that says so. Never throws. */
  return async function showDraft(
    bot: Bot,
    to: Recipient,
    part: Part,
    { key, signal }: Pick<SendOptions, 'key' | 'signal'>,
  ): Promise<boolean | { failure: Failure }> {
    const where = `${bot.our().id}/${to.address}`;
    if (to.kind !== 'direct' || part.file !== undefined || !isKnownToServer || refused.get(where))
      return false;
    const request = draftRequest(to, part, key, linkPreviews);
    if (request === null) return false;
    const done = await bot.api.send(request, (raw, draft, ended) => raw.sendMessageDraft(draft, ended), {
      signal,
    });
    if (!('failure' in done)) return true;
    const { failure } = done;
    const { reason, code } = failure;
    log.debug({ channel: 'telegram', reason }, 'a draft was not shown');
    // A flood or an outage passes, and the next draft shows what this one did not.
    if (code === null || code === 429 || code >= 500) return true;
    if (isMethodUnknown(failure)) isKnownToServer = false;
    else if (isLockedOut(failure) || isNotThere(failure)) return { failure };
    else refused.set(where, true);
    return false;
  };
}

/** The payload of sendMessageDraft; null where the chat has no drafts. */
function draftRequest(to: Recipient, part: Part, key: string, linkPreviews: boolean) {
  const { chat_id, ...said } = sendRequest(to, part, { linkPreviews });
  if (typeof chat_id !== 'number') return null;
  return { chat_id, draft_id: draftIdOf(key), can_stop: true as const, ...said };
}

/** Any number but zero, the same for the same key. */
function draftIdOf(key: string): number {
  return createHash('sha256').update(key).digest().readUInt32BE() >>> 1 || 1;
}
